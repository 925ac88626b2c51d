"""Every metric of the processes. ``docs/reference/metrics.md`` is made from this module. Pure."""

from __future__ import annotations

from .family import Family, FamilyKind

_COUNTER, _GAUGE, _HISTOGRAM = FamilyKind.COUNTER, FamilyKind.GAUGE, FamilyKind.HISTOGRAM
_PAIR = ("source", "target")
_SHARD = ("target", "shard")

SINK_ROWS = Family(
    "shardmerge_sink_rows_total", _COUNTER,
    "Row events applied to the target since the process started.", _PAIR,
)  # fmt: skip
SINK_BYTES = Family(
    "shardmerge_sink_read_bytes_total", _COUNTER,
    "Bytes of the row events' values that were read.", _PAIR, "bytes",
)  # fmt: skip
SINK_BATCHES = Family(
    "shardmerge_sink_batch_seconds", _HISTOGRAM,
    "How long batches took, from their first task to their last. `_count` is the number of "
    "batches. One batch holds rows of all targets.", (), "seconds",
)  # fmt: skip
SINK_ROUNDS = Family(
    "shardmerge_sink_round_seconds", _HISTOGRAM,
    "How long rounds of the driver's loop took, without the wait for something to do before them. "
    "A round without rows shows what the number of shards costs.", (), "seconds",
)  # fmt: skip
SINK_RETRIES = Family(
    "shardmerge_sink_task_failures_total", _COUNTER,
    "Tasks that failed; their rows are applied again by the next batch. `target` is empty when it "
    "is not known.", ("target",),
)  # fmt: skip
SINK_FAILING = Family(
    "shardmerge_sink_failed_tries", _GAUGE,
    "How many batches of the target's rows failed in a row; 0 when the latest one ended well.",
    ("target",),
)  # fmt: skip
SINK_OVERWRITTEN = Family(
    "shardmerge_sink_overwritten_rows_total", _COUNTER,
    "At least this many inserts replaced another row that the target had under the same primary "
    "key.", _PAIR,
)  # fmt: skip
SINK_LAG_ROWS = Family(
    "shardmerge_sink_lag_records", _GAUGE,
    "Offsets of the row topics that are not applied: at most so many rows. Sum over the source's "
    "shards.", _PAIR,
)  # fmt: skip
SINK_LAG_SECONDS = Family(
    "shardmerge_sink_lag_seconds", _GAUGE,
    "For how long, about, the oldest row that is not applied has been in Kafka; 0 without such a "
    "row. The greatest of the source's shards. Time counts from when this process first saw the "
    "row.", _PAIR, "seconds",
)  # fmt: skip
SINK_PARKED = Family(
    "shardmerge_sink_parked_rows", _GAUGE,
    "The part of `shardmerge_sink_lag_records` that belongs to shards which wait for something.",
    _PAIR,
)  # fmt: skip
SINK_SHARDS = Family(
    "shardmerge_sink_shards", _GAUGE, "Shards of the target that a decision names.", ("target",),
)  # fmt: skip
SINK_WAITING = Family(
    "shardmerge_sink_waiting_shards", _GAUGE,
    "Shards whose rows wait. `code` is the reason's code, see `shardmerge explain-code`; there is "
    "a series for each code that is the reason of some shard now, and for each kind one without a "
    "code, which is 0 or counts reasons that have none. `kind` is `decision` (a decision holds the "
    "shard), `row` (a row cannot be applied), `topic` (its row topic is not read), `paused` (by a "
    "command or its route), `truncate` (its rows are removed first) or `barrier` (waits for a "
    "statement, other rows or a schema change, and needs nobody).", ("target", "kind", "code"),
)  # fmt: skip
SINK_WAITING_SECONDS = Family(
    "shardmerge_sink_waiting_seconds", _GAUGE,
    "For how long the shard of this kind that waits longest has waited at its place, as seen by "
    "this process.", ("target", "kind"), "seconds",
)  # fmt: skip
SINK_RETENTION = Family(
    "shardmerge_sink_retention_left_seconds", _GAUGE,
    "Time until Kafka may delete the oldest waiting row of a shard that is held (kinds `decision`, "
    "`row`, `topic` and `paused`), by its topic's `retention.ms`; 0 or less: it may be deleted "
    "already. The least of the source's shards. There is no sample when no shard is held or the "
    "topics keep rows for ever, as the connectors make them.", _PAIR, "seconds",
)  # fmt: skip
SINK_RETENTION_BYTES = Family(
    "shardmerge_sink_retention_left_bytes", _GAUGE,
    "About how many bytes can be written behind the oldest waiting row of a held shard until its "
    "topic's `retention.bytes` lets Kafka delete that row; 0 or less: it may be deleted already. "
    "An estimate, since Kafka does not tell the size of a part of a log: the mean size of up to "
    "100 records from that row on, times the offsets behind it. What the producer compresses takes "
    "less. The least of the source's shards. There is no sample when no shard is held or the "
    "topics have no such bound, as the connectors make them.", _PAIR, "bytes",
)  # fmt: skip
SINK_OPEN = Family(
    "shardmerge_sink_open_statements", _GAUGE,
    "Statements that are decided and not executed. `state` is `debt`, `waiting`, `executing` or "
    "`refused`.", ("target", "state"),
)  # fmt: skip
SINK_OPEN_SECONDS = Family(
    "shardmerge_sink_oldest_statement_seconds", _GAUGE,
    "Age of the oldest statement in this state, as seen by this process; for `debt` the age of the "
    "oldest debt.", ("target", "state"), "seconds",
)  # fmt: skip
SINK_STATEMENTS = Family(
    "shardmerge_sink_statements_total", _COUNTER,
    "Statements that ended. `outcome` is `done`, `refused` or `postponed` (the target did not "
    "answer); the last two are tried again.", ("target", "outcome"),
)  # fmt: skip
SINK_STATEMENT_SECONDS = Family(
    "shardmerge_sink_statement_seconds", _HISTOGRAM,
    "How long statements ran on the target, however they ended.", ("target",), "seconds",
)  # fmt: skip
SINK_VERSION = Family(
    "shardmerge_sink_executed_version", _GAUGE,
    "Every statement of versions up to this one is executed, except debts.", ("target",),
)  # fmt: skip
SINK_DRIFT = Family(
    "shardmerge_sink_drift", _GAUGE,
    "In how much the target's table differs from what was decided and executed, see `shardmerge "
    "drift`. `kind` is what a difference can do to rows: `harmless`, `refuses`, `values`, "
    "`missing`, or `unread` for a table that is not understood.", ("target", "kind"),
)  # fmt: skip
SINK_ROUND = Family(
    "shardmerge_sink_round_timestamp_seconds", _GAUGE,
    "When the driver's loop last ended a round, in seconds since 1970.", (), "seconds",
)  # fmt: skip
SINK_ACTIVE = Family(
    "shardmerge_sink_active", _GAUGE,
    "1 if this process writes to the target, 0 while it starts or waits as a standby.", (),
)  # fmt: skip
SINK_LINEAGE = Family(
    "shardmerge_sink_lineage_events_total", _COUNTER,
    "OpenLineage events, with `[lineage]`: `sent`; `refused` by the server, for good; `dropped`, "
    "because the server was away for long. A dropped report may stand for several events.",
    ("outcome",),
)  # fmt: skip
SINK_SHARD_LAG = Family(
    "shardmerge_sink_shard_lag_records", _GAUGE,
    "As `shardmerge_sink_lag_records`, for one shard. Only with `--metrics-per-shard`.", _SHARD,
)  # fmt: skip
SINK_SHARD_WAITING = Family(
    "shardmerge_sink_shard_waiting", _GAUGE,
    "1 while the shard's rows wait for something, else 0. Only with `--metrics-per-shard`.",
    _SHARD,
)  # fmt: skip
SINK = (
    SINK_ROWS, SINK_BYTES, SINK_BATCHES, SINK_ROUNDS, SINK_RETRIES, SINK_FAILING, SINK_OVERWRITTEN,
    SINK_LAG_ROWS, SINK_LAG_SECONDS, SINK_PARKED, SINK_SHARDS, SINK_WAITING, SINK_WAITING_SECONDS,
    SINK_RETENTION, SINK_RETENTION_BYTES, SINK_OPEN, SINK_OPEN_SECONDS, SINK_STATEMENTS,
    SINK_STATEMENT_SECONDS, SINK_DRIFT, SINK_VERSION, SINK_ROUND, SINK_ACTIVE,
    SINK_LINEAGE, SINK_SHARD_LAG, SINK_SHARD_WAITING,
)  # fmt: skip

AGENTS_READY = Family(
    "shardmerge_agents_ready", _GAUGE,
    "1 when this worker's agents consume, 0 while they start, recover or rebalance.",
)  # fmt: skip
AGENTS_VIEW = Family(
    "shardmerge_agents_view_caught_up", _GAUGE,
    "1 when everything that was in the pipeline's topics at the start is in the metrics below "
    "and in the status pages.",
)  # fmt: skip
AGENTS_RECORDS = Family(
    "shardmerge_agents_records_total", _COUNTER,
    "Records that an agent of this worker has completed since it started.", ("agent",),
)  # fmt: skip
AGENTS_LAG = Family(
    "shardmerge_agents_lag_records", _GAUGE,
    "Offsets of the topic that the agent has not completed: at most so many records. The tracker "
    "reads a topic for each source, which has the source's name, and that of the commands; the "
    "coordinator reads the pipeline's schema log. Only topics that this worker has taken over.",
    ("agent", "topic"),
)  # fmt: skip
AGENTS_DECISIONS = Family(
    "shardmerge_agents_decisions_total", _COUNTER,
    "Decisions of the pipeline that the ddl topic still had at the start, and all since. "
    "`outcome` is `emit`, `no-op`, `hold` or `refused`.", ("target", "outcome"),
)  # fmt: skip
AGENTS_VERSION = Family(
    "shardmerge_agents_decided_version", _GAUGE, "Number of the latest decision.", ("target",),
)  # fmt: skip
AGENTS_SHARDS = Family(
    "shardmerge_agents_shards", _GAUGE,
    "Shards by `state`: `live`, `held`, `paused` or `left`.", ("target", "state"),
)  # fmt: skip
AGENTS_HELD = Family(
    "shardmerge_agents_held_shards", _GAUGE,
    "Shards that a decision holds. `kind` is `conflict` (there is no joined schema) or `other`. "
    "`code` is the reason's code, see `shardmerge explain-code`; there is a series for each code "
    "that is the reason of some shard now, and for each kind one without a code, which is 0 or "
    "counts reasons that have none.", ("target", "kind", "code"),
)  # fmt: skip
AGENTS_CONFLICT = Family(
    "shardmerge_agents_conflict_seconds", _GAUGE,
    "Age of the oldest conflict that holds a shard: time since its schema change was made; 0 "
    "without a conflict.", ("target",), "seconds",
)  # fmt: skip
AGENTS = (
    AGENTS_READY, AGENTS_VIEW, AGENTS_RECORDS, AGENTS_LAG, AGENTS_DECISIONS, AGENTS_VERSION,
    AGENTS_SHARDS, AGENTS_HELD, AGENTS_CONFLICT,
)  # fmt: skip

CONNECTOR_STATE = Family(
    "shardmerge_connector_state", _GAUGE,
    "1 for the connector's present `state` as Connect tells it (`RUNNING`, `PAUSED`, `STOPPED`, "
    "`FAILED`, `UNASSIGNED`, `RESTARTING`), or `ABSENT`.", ("connector", "state"),
)  # fmt: skip
CONNECTOR_TASKS = Family(
    "shardmerge_connector_tasks", _GAUGE, "Tasks of the connector by `state`.",
    ("connector", "state"),
)  # fmt: skip
CONNECTOR_RESTARTS = Family(
    "shardmerge_connector_restarts_total", _COUNTER,
    "Restarts and repairs of a failed connector by the watchdog.", ("connector",),
)  # fmt: skip
CONNECTOR_GIVEN_UP = Family(
    "shardmerge_connector_given_up", _GAUGE,
    "1 while a connector has failed that ten restarts did not help; it is restarted with pauses of "
    "up to ten minutes.", ("connector",),
)  # fmt: skip
WATCHDOG_LOOK = Family(
    "shardmerge_watchdog_look_timestamp_seconds", _GAUGE,
    "When Connect last answered about the connector, in seconds since 1970.", ("connector",),
    "seconds",
)  # fmt: skip
WATCHDOG = (
    CONNECTOR_STATE, CONNECTOR_TASKS, CONNECTOR_RESTARTS, CONNECTOR_GIVEN_UP, WATCHDOG_LOOK,
)  # fmt: skip

VALIDATE_DIFFERENCES = Family(
    "shardmerge_validate_differences", _GAUGE,
    "Rows of the target that are not what their shards have, as the latest comparison confirmed. "
    "`kind` is `missing`, `extra` or `differs`; for tables without a primary key `count`: how many "
    "rows differ at least.", ("target", "kind"),
)  # fmt: skip
VALIDATE_UNCOMPARED = Family(
    "shardmerge_validate_uncompared_shards", _GAUGE,
    "Shards that the latest comparison of the target left out, because they wait or do not answer.",
    ("target",),
)  # fmt: skip
VALIDATE_ROWS = Family(
    "shardmerge_validate_rows_total", _COUNTER,
    "Rows of shards that were compared since the process started.", ("target",),
)  # fmt: skip
VALIDATE_COMPLETED = Family(
    "shardmerge_validate_completed_timestamp_seconds", _GAUGE,
    "When the target was last compared completely, in seconds since 1970.", ("target",), "seconds",
)  # fmt: skip
VALIDATE_FAILURES = Family(
    "shardmerge_validate_failures_total", _COUNTER,
    "Comparisons of a target, and beginnings of rounds, that failed because a server, Kafka or "
    "Kafka Connect did not answer.",
)  # fmt: skip
VALIDATE_FAILING = Family(
    "shardmerge_validate_failing", _GAUGE,
    "1 for a target whose latest comparison failed. `code` says why. The other values of the "
    "target are those of the comparison before.", ("target", "code"),
)  # fmt: skip
VALIDATE_SINCE = Family(
    "shardmerge_validate_differing_since_timestamp_seconds", _GAUGE,
    "When the oldest difference of the target that is still there was first found by this process, "
    "in seconds since 1970. Missing when there is no difference.", ("target",), "seconds",
)  # fmt: skip
VALIDATE = (
    VALIDATE_DIFFERENCES, VALIDATE_SINCE, VALIDATE_UNCOMPARED, VALIDATE_ROWS, VALIDATE_COMPLETED,
    VALIDATE_FAILURES, VALIDATE_FAILING,
)  # fmt: skip

PROCESSES = {"sink": SINK, "agents": AGENTS, "watchdog": WATCHDOG, "validate": VALIDATE}
"""Process → its metrics, in the order of the reference page."""
