"""A pipeline with everything that a page can show, decided by the agents' own functions.

Statements run through both agents in memory; what the sink would tell is added by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardmerge.agents.handling.effects import SourceRecord
from shardmerge.agents.handling.handlers import CoordinatorHandler, TrackerHandler
from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.preview.rollout import RolloutStep, TableFile
from shardmerge.agents.preview.simulated_agents import (
    AgentsState,
    SimulatedAgents,
    SimulatedDecision,
)
from shardmerge.agents.status.view import StatusView
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome, StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.schemas.records.validations import DifferingRows, TargetValidation

NOW_MS = 1_795_000_000_000
REPORTS = 240
HOURS = 4
ORDERS = TargetTable("merged", "orders")
ITEMS = TargetTable("merged", "items")
_FILE = """
[pipeline]
name = "shop"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[target]
host = "target"
port = 1
user = "u"
password = ""
[[routes]]
database = 'app'
table = 'orders_\\d+'
target = "merged.orders"
leave_out = "secret"
renames = "map"
[[routes]]
database = 'app'
table = 'items_\\d+'
target = "merged.items"
"""
_SOURCE = """
[[sources]]
name = "s{number}"
host = "h"
port = 1
user = "u"
password = ""
server_id = {number}
version = "8.0.36"
charset = "utf8mb4"
"""


def pipeline(mode: str = "optimistic") -> Pipeline:
    """The example's."""
    text = _FILE.replace('name = "shop"', f'name = "shop"\nmode = "{mode}"')
    return parse_pipeline(text + "".join(_SOURCE.format(number=n) for n in (1, 2)), {})


class ExampleLine:
    """Both agents of a pipeline, and the view that their records make."""

    def __init__(self, of: Pipeline, now_ms: int = NOW_MS) -> None:
        self.line = SimulatedAgents(of)
        self.state = AgentsState()
        self.view = StatusView()
        self.now_ms = now_ms - 6 * 3_600_000

    def table(self, shard: ShardId, columns: str) -> None:
        """Let a snapshot describe a table."""
        file = TableFile(shard, f"CREATE TABLE `{shard.table}` ({columns})")
        self.state, answers = self.line.described(self.state, file)
        self._tell(answers, file.sql)

    def run(self, shard: ShardId, sql: str, after_s: int = 600) -> None:
        """Let a source execute a statement, some time after the last one."""
        self.now_ms += after_s * 1000
        self.state, answers = self.line.executed(self.state, RolloutStep(shard, sql))
        self._tell(answers, sql)

    def command(self, target: TargetTable, kind: CommandKind, shard: ShardId | None = None) -> None:
        """Let an operator give a command."""
        self.state, answer = self.line.commanded(self.state, target, kind, shard)
        assert answer is not None
        self._tell((answer,), f"{kind.value} {shard or ''}")

    def send(self, said: OperatorCommand) -> None:
        """Let both agents take a command from its topic."""
        if said.kind is CommandKind.SET_SCHEMA:
            effects = TrackerHandler(self.line.pipeline)(
                MemoryRows(),
                SourceRecord(said.id.source, 0, said.id.offset, b"", codec.encode(said)),
            )
            forwarded = codec.decode(effects.sends[0].value or b"")
            assert isinstance(forwarded, OperatorCommand)
            said = forwarded
        self.obey(said)

    def obey(self, said: OperatorCommand) -> None:
        """Let the coordinator take a command from its topic."""
        before = self.state.targets[said.target]
        step = CoordinatorHandler(self.line.pipeline).step(before, said)
        assert step.decision is not None
        self.state = replace(self.state, targets=self.state.targets.set(said.target, step.state))
        self._tell((SimulatedDecision(step.decision, before, step.state),), str(said))

    def _tell(self, answers: Sequence[SimulatedDecision], ddl: str) -> None:
        for answer in answers:
            decision = answer.decision
            if decision.ts_ms == 0:
                decision = replace(decision, ts_ms=self.now_ms)
            if not decision.ddl:
                decision = replace(decision, ddl=ddl)
            state = answer.after
            if state is not None:
                self.view.apply(
                    JoinedSchema(
                        state.target,
                        state.version,
                        state.columns,
                        state.schema,
                        len(state.shards),
                        len(state.held),
                    )
                )
            self.view.apply(decision)


def orders(number: int) -> ShardId:
    """A shard of ``merged.orders``."""
    return ShardId(f"s{1 + number % 2}", "app", f"orders_{number}")


def items(number: int) -> ShardId:
    """A shard of ``merged.items``."""
    return ShardId(f"s{1 + number % 2}", "app", f"items_{number}")


_ORDERS = (
    "id INT PRIMARY KEY, customer VARCHAR(80) NOT NULL, total INT NOT NULL, note VARCHAR(200), "
    "secret VARCHAR(20), created DATETIME"
)


def example(shards: int = 12, now_ms: int = NOW_MS) -> ExampleLine:
    """A target with every kind of cell, a held shard, debts and waits; and one that flows."""
    found = ExampleLine(pipeline(), now_ms)
    for number in range(shards):
        extra = ", old INT" if number == shards - 1 else ""
        found.table(orders(number), _ORDERS + extra)
    for number in range(3):
        found.table(items(number), "id INT PRIMARY KEY, name VARCHAR(40)")
        found.run(items(number), f"ALTER TABLE items_{number} ADD COLUMN price INT", 1)
    flowing(found, 0)
    for number in range(5):
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN level INT", 60)
        flowing(found, 2 + number)
    found.run(orders(0), "ALTER TABLE orders_0 MODIFY total BIGINT NOT NULL")
    flowing(found, 8)
    found.run(orders(1), "ALTER TABLE orders_1 RENAME COLUMN customer TO buyer")
    found.run(orders(2), "ALTER TABLE orders_2 DROP COLUMN note")
    found.run(orders(7), "ALTER TABLE orders_7 ADD COLUMN level DATE")
    found.command(ORDERS, CommandKind.PAUSE, orders(9))
    last = orders(shards - 1)
    found.run(last, f"ALTER TABLE {last.table} DROP COLUMN old")
    found.run(ShardId("s1", "app", "other"), "CREATE TABLE other (id INT)")
    progress(found, now_ms)
    return found


def progress(found: ExampleLine, now_ms: int) -> None:
    """What the sink tells of the example, each minute for hours, then each second."""
    target = found.view.target(str(ORDERS))
    other = found.view.target(str(ITEMS))
    assert target is not None
    assert other is not None
    gates = {shard.shard: shard for shard in target.shards}
    renames, held, paused = gates[orders(1)], gates[orders(7)], gates[orders(9)]
    open_ = (
        StatementProgress(
            renames.version,
            0,
            "ALTER TABLE `merged`.`orders` RENAME COLUMN `customer` TO `buyer`",
            StatementKind.EXPANDING,
            "executing",
            "waits for a metadata lock, since 31 s",
            now_ms - 32_000,
        ),
        StatementProgress(
            target.version,
            0,
            "ALTER TABLE `merged`.`orders` DROP COLUMN `old`",
            StatementKind.CONTRACTING,
            "debt",
            f"waits for rows of {held.shard} before {held.position}",
            now_ms - 900_000,
            "SM-1621",
        ),
    )
    waiting = {
        renames.shard: ShardProgress(
            renames.shard,
            12,
            f"waits for the target to reach version {renames.version}",
            "",
            renames.position,
            now_ms - 30_000,
            code="SM-1601",
        ),
        held.shard: ShardProgress(
            held.shard, 12, held.reason, held.hint, held.position, held.ts_ms,
            code=held.code,
        ),
        paused.shard: ShardProgress(
            paused.shard, 77, paused.reason, paused.hint, None, paused.ts_ms,
            code=paused.code,
        ),
    }  # fmt: skip
    rows = 1_000_000
    minutes = range(HOURS * 60, REPORTS // 60, -1)
    times = [now_ms - minute * 60_000 for minute in minutes]
    times += [now_ms - (REPORTS - report) * 1000 for report in range(REPORTS)]
    for report, at in enumerate(times, -len(minutes)):
        added = 300 + 40 * (report * 7 % 11) + (900 if report // 40 % 2 else 0)
        rows += added if report >= 0 else added * 60
        parked = {held.shard: max(0, report - 80) * 25, renames.shard: max(0, report - 210) * 9}
        shards = tuple(
            replace(
                waiting.get(name, ShardProgress(name, 5_000 + rows)), parked=parked.get(name, 0)
            )
            for name in gates
        )
        executed = renames.version - 1
        found.view.apply(
            SinkProgress(
                ORDERS, executed, rows, open_, shards, at, writer="10.0.0.5", standbys=("10.0.0.6",)
            )
        )
        found.view.apply(SinkProgress(ITEMS, other.version, max(0, report) * 10, (), (), at))


def flowing(found: ExampleLine, after_s: int) -> None:
    """What the sink tells of ``merged.orders`` when everything is executed and applied."""
    target = found.view.target(str(ORDERS))
    assert target is not None
    shards = tuple(ShardProgress(shard.shard, 5_000) for shard in target.shards)
    at = found.now_ms + after_s * 1000
    found.view.apply(SinkProgress(ORDERS, target.version, 0, (), shards, at))


def failing(found: ExampleLine, now_ms: int) -> None:
    """Rows of ``merged.items`` that cannot be applied."""
    failure = FailureProgress(
        "Data too long for column 'name' at row 1", "look at the column's type",
        "shop.s1.app.items_0/0@512", 12, now_ms - 120_000, "SM-3105",
    )  # fmt: skip
    target = found.view.target(str(ITEMS))
    assert target is not None
    record = SinkProgress(ITEMS, target.version, 600, (), (), now_ms, failure)
    found.view.apply(replace(record, writer="10.0.0.5", standbys=("10.0.0.6",)))


def compared(found: ExampleLine, now_ms: int) -> None:
    """What ``shardmerge validate`` has found: ``merged.orders`` differs, ``merged.items`` not."""
    view, hour_ms = found.view, 3_600_000
    versions = {t.target: t.version for t in view.targets()}
    keys = tuple((str(number),) for number in range(4_711, 4_731))
    differing = (
        DifferingRows("differs", orders(4), 29, keys),
        DifferingRows("missing", orders(5), 2, (("17",), ("205",))),
        DifferingRows("extra", None, 1, (("90017",),)),
    )
    whole = TargetValidation(
        ORDERS, versions[ORDERS] - 1, now_ms - 4 * hour_ms, now_ms - 3 * hour_ms, True, 1_204_311,
        11, 2, 1, 29, obstacles=1, key=("id",), differing=differing,
        left_out=(f"{orders(9)} is not compared: it is paused",), since_ms=now_ms - 27 * hour_ms,
    )  # fmt: skip
    view.apply(whole)
    view.apply(
        TargetValidation(
            ORDERS, versions[ORDERS], now_ms - hour_ms, now_ms - hour_ms + 9_000, False, 40_000, 11,
            key=("id",), stopped="source s2: Lost connection to MySQL server", code="SM-4411",
        )
    )  # fmt: skip
    view.apply(
        TargetValidation(
            ITEMS, versions[ITEMS], now_ms - 60_000, now_ms - 50_000, True, 2_390, 3, key=("id",)
        )
    )


def wide(shards: int, columns: int, odd: int = 100, changes: int = 0) -> StatusView:
    """A view of one target, of whose shards the sink has reported.

    Args:
        shards: How many shards there are.
        columns: How many columns, besides the primary key.
        odd: Of so many shards each one lacks other columns than the next.
        changes: How many changes there were; 1,000 shards made each one.
    """
    names = ", ".join(f"c{n} INT" for n in range(columns))
    found = ExampleLine(pipeline())
    found.table(orders(0), f"id INT PRIMARY KEY, {names}")
    target = found.view.target(str(ORDERS))
    assert target is not None
    (first,) = target.decisions
    joined = found.state.targets[ORDERS]
    view = StatusView()
    last = first.columns[-1].column
    new = [
        ShardColumn(f"new{n}#1", replace(last, name=f"new{n}", type=ColumnType("date")))
        for n in range(changes)
    ]
    view.apply(JoinedSchema(ORDERS, shards, (*joined.columns, *new), joined.schema, shards))
    latest = []
    for number in range(shards):
        has = first.columns
        if number % odd == 0:
            without = 1 + number // odd % columns
            has = (*has[:without], *has[without + 1 + number // odd // columns :])
        latest.append(tuple(replace(c) for c in has))
        view.apply(_copy(first, number + 1, orders(number), latest[number]))
    version = shards
    for change, column in enumerate(new):
        for number in (n % shards for n in range(change * 500, change * 500 + 1_000)):
            version += 1
            latest[number] = (*latest[number], column)
            ddl = f"ALTER TABLE orders_{number} ADD COLUMN {column.column.name} DATE"
            made = _copy(first, version, orders(number), latest[number])
            view.apply(replace(made, ddl=ddl))
    reports = tuple(ShardProgress(orders(number), 5_000) for number in range(shards))
    view.apply(SinkProgress(ORDERS, version, 0, (), reports, NOW_MS))
    return view


def _copy(
    first: Decision, version: int, shard: ShardId, columns: tuple[ShardColumn, ...]
) -> Decision:
    return replace(
        first, version=version, shard=shard, columns=columns, statements=(),
        outcome=Outcome.NOOP, ts_ms=NOW_MS,
    )  # fmt: skip
