"""Decisions as lines: what came, what was decided, by whom, and what became of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from shardmerge.agents.holds.shapes import Reason
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.progress import SinkProgress

from .decision_shapes import DecidedFixup, DecisionLine
from .picture import Decided, Picture, moment


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which decisions are shown; None and empty want all.

    Attributes:
        shard: Its own changes, what releases, pauses or resumes it, and commands about it.
        since_ms, until_ms: Bounds of the time at which it was written, inclusive.
        from_version, to_version: Bounds of the version, inclusive.
        outcomes: Any of these.
        ignored: Whether statements that concern no shard are shown too.
        last: At most so many, the latest ones; 0 for all.
    """

    target: TargetTable | None = None
    shard: ShardId | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    from_version: int | None = None
    to_version: int | None = None
    outcomes: tuple[str, ...] = ()
    ignored: bool = False
    last: int = 0

    def includes(self, decided: Decided) -> bool:
        """Whether a decision fulfils every condition but ``last``."""
        at, version = decided.written_ms, decided.version
        return (
            bool(decided.target or self.ignored or decided.outcome in self.outcomes)
            and (self.target is None or str(self.target) == decided.target)
            and (self.since_ms is None or at >= self.since_ms)
            and (self.until_ms is None or at <= self.until_ms)
            and (self.from_version is None or version >= self.from_version)
            and (self.to_version is None or version <= self.to_version)
            and (not self.outcomes or decided.outcome in self.outcomes)
            # Last: only this looks into the record.
            and (self.shard is None or self.shard in _concerned(decided.decision))
        )


def decision_lines(picture: Picture, wanted: Wanted) -> Iterator[DecisionLine]:
    """The wanted decisions in the order in which they were written."""
    newest_first = filter(wanted.includes, reversed(picture.decided))
    found = list(islice(newest_first, wanted.last or None))
    for decided in reversed(found):
        at = decided.decision.target
        by = picture.by(decided.decision.id)
        yield decision_line(decided, by, picture.progress.get(at) if at else None)


def decision_line(decided: Decided, by: str, progress: SinkProgress | None) -> DecisionLine:
    """One decision as a line.

    Args:
        decided: The decision.
        by: Who gave the command that it answers; "" for a source's statement.
        progress: Of its target, as the sink told it last.
    """
    decision = decided.decision
    return DecisionLine(
        target=str(decision.target or ""),
        version=decision.version,
        time=moment(decided.written_ms),
        shard=str(decision.shard or ""),
        position=str(decision.position) if decision.shard else "",
        change=str(decision.id),
        outcome=decision.outcome.value,
        asked=decision.ddl,
        by=by,
        reason=decision.reason,
        hint=decision.hint,
        statements=tuple(statement.sql for statement in decision.statements),
        state=_statements_state(decision, progress),
        released=tuple(map(str, decision.released)),
        warnings=decision.warnings,
        code=decision.code,
        warning_codes=tuple(warning.code for warning in decision.notices),
        statement_reasons=tuple(Reason(s.code, s.reason) for s in decision.statements),
        fixups=tuple(
            DecidedFixup(str(f.shard), f.kind.value, f.columns, f.reason, f.code)
            for f in decision.fixups
        ),
    )


def _statements_state(decision: Decision, progress: SinkProgress | None) -> str:
    if not decision.statements:
        return ""
    if progress is None:
        return "open"
    open_ = {s.state for s in progress.open if s.version == decision.version}
    if "refused" in open_:
        return "refused"
    return "open" if open_ or decision.version > progress.executed_version else "executed"


def _concerned(decision: Decision) -> set[ShardId]:
    shards = {*decision.released, *decision.pauses, *decision.resumes, *decision.leaves}
    if decision.shard is not None:
        shards.add(decision.shard)
    return shards | {fixup.shard for fixup in decision.fixups}
