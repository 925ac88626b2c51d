"""What the driver hands out of a first load, and what comes back: plain, picklable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule, rule_of
from shardmerge.schemas.records.decisions import Binding, TargetStatement
from shardmerge.spark_sink.barrier.decisions import TargetDecisions
from shardmerge.spark_sink.barrier.statements import bindings
from shardmerge.spark_sink.barrier.truncations import emptying
from shardmerge.spark_sink.loading.load_rules import chosen, has_own_key
from shardmerge.spark_sink.loading.load_state import Chunk, Load, LoadKind

from .progress import Trouble
from .ranges import ShardStream
from .shard_streams import shard_stream
from .sink_state import SinkState

_ELSEWHERE = (
    "when the source's other loads are complete, give it snapshot = 'debezium', restart the sink, "
    "and run `shardmerge command reread` for the shard"
)


@dataclass(frozen=True, slots=True)
class ChunkOrder:
    """A chunk to be read and written.

    Attributes:
        load: The load that the chunk belongs to, without its list of chunks.
        chunk: As it is given out.
        stream: How the shard's rows are written; its only segment is the one behind the load's
            base.
        bindings: Identity → physical target column.
        leave_out: The route's expression for the names of columns that are not read.
        most_rows: How many rows the chunk may have. One more is read, to see whether it has more.
        writer_epoch: Fencing token, as of ``RangeTask``.
        signals: Database of the source's signal table; a snapshot writes a mark there.
    """

    load: Load
    chunk: Chunk
    stream: ShardStream
    bindings: Mapping[str, Binding]
    leave_out: str
    most_rows: int
    writer_epoch: int
    signals: str = ""


class ChunkEnd(StrEnum):
    """How a chunk's task ended."""

    DONE = "done"
    REFUSED = "the chunk is not wanted any more"
    OTHER_TABLE = "the table is not the one of the load's base"
    TOO_LARGE = "the chunk has too many rows"


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What a chunk's task did.

    Attributes:
        rows: How many rows were read; 0 unless it is done.
        size: About how many bytes their values have.
        read_before: See ``Chunk``; None unless it is done.
        detail: What differs in the table, for people.
    """

    shard: ShardId
    number: int
    end: ChunkEnd
    rows: int = 0
    size: int = 0
    read_before: SourcePosition | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """Why a chunk was neither read nor written. It is given out again after a pause.

    Attributes:
        final: Trying again cannot help: the sink stops, with the message.
        code: Of the error, see ``schemas.codes``.
    """

    shard: ShardId
    number: int
    message: str
    hint: str = ""
    final: bool = False
    code: str = ""


def chunk_order(
    target: TargetDecisions,
    load: Load,
    number: int,
    state: SinkState,
    most_rows: int,
    *,
    signals: str = "",
) -> ChunkOrder:
    """The order for a chunk that is given out.

    Args:
        target: Everything decided for the shard's target.
        load: The shard's load. A snapshot that is copied can stand before later gates.
        number: Of the chunk.
        state: See ``SinkState``.
        most_rows: See ``ChunkOrder``.
        signals: See ``ChunkOrder``.
    """
    name = load.shard
    stream, gates = shard_stream(target, name, None, state), target.shards[name]
    later = len(gates.gates) - gates.upto(load.base)
    rule = rule_of(state.routes, name)
    return ChunkOrder(
        load=replace(load, chunks=()),
        chunk=load.chunks[number],
        stream=replace(stream, segments=(stream.segments[-1 - later],)),
        bindings=bindings(target, state.executed.get(target.target, ())),
        leave_out=rule.leave_out if rule is not None else "",
        most_rows=most_rows,
        writer_epoch=state.writer_epoch,
        signals=signals,
    )


def chosen_load(
    target: TargetDecisions, load: Load, state: SinkState, *, has_other_unique_key: bool
) -> Load:
    """The load, to be read in chunks or as a snapshot (``load_rules.chosen``).

    Args:
        target: Everything decided for the shard's target.
        load: The shard's load, which stands at the shard's last gate.
        state: See ``SinkState``.
        has_other_unique_key: Whether the target's table has a unique key besides its primary key.
    """
    return chosen(
        target.shards[load.shard],
        load,
        has_other_unique_key=has_other_unique_key,
        applies_every_operation=not _passed_over(rule_of(state.routes, load.shard)),
    )


def unfit(target: TargetDecisions, load: Load, state: SinkState) -> Trouble | None:
    """Why a load that has read chunks can read no more of its shard; None when it can.

    Args:
        target: Everything decided for the shard's target.
        load: The shard's load, as ``chosen_load`` has left it.
        state: See ``SinkState``.
    """
    if load.clears and clearing(target, load, state) is None:
        why = "the target cannot tell its rows from others, which have to go before it is read anew"
        return _trouble(
            f"its table cannot be read in chunks any more, and {why}",
            f"`shardmerge rebuild {load.target}`",
        )
    if load.kind is LoadKind.SNAPSHOT:
        return None
    why = _passed_over(rule_of(state.routes, load.shard))
    if not why and not has_own_key(target.shards[load.shard].gates[-1]):
        why = "its primary key was dropped"
    chunks = "chunks of its table were read at different moments"
    return _trouble(f"{why}, but {chunks}", _ELSEWHERE) if why else None


def clearing(target: TargetDecisions, load: Load, state: SinkState) -> TargetStatement | None:
    """The statement that deletes the rows from before a load that began again (``Load.clears``).

    None if the target cannot tell them from other shards' rows.

    Args:
        target: Everything decided for the shard's target.
        load: The shard's load.
        state: See ``SinkState``.
    """
    bound = bindings(target, state.executed.get(target.target, ()))
    return emptying(target, (load.shard,), bound)


def _trouble(reason: str, hint: str) -> Trouble:
    return Trouble(reason, hint, "SM-1616")


def _passed_over(rule: RoutingRule | None) -> str:
    """Which operations of a route the target does not follow; "" when it follows all."""
    if rule is None:
        return ""
    if rule.ignore:
        return "its route ignores operations"
    return "its route keeps the rows of a TRUNCATE" if rule.keeps_truncated else ""
