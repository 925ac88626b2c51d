"""What each step changes: in the stored record, and in what a rehearsal foresees. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardmerge.schemas.model.position import BEGINNING
from shardmerge.spark_sink.validation.proofs import NO_PROOF, Proof

from .procedure import next_step, next_step_back
from .record import CutoverRecord, MadeReadOnly, NotedEnd, Tidied
from .seen import ENDS, Act, Seen, SourceSeen, Step, Wishes


@dataclass(frozen=True, slots=True)
class Proved:
    """What a comparison proved that ended without a difference.

    Attributes:
        rows: How many rows of shards it read.
        proof: What it proves for later.
        changed_only: Whether it read only the rows that had changed since an earlier proof.
        unprovable: Why a comparison of this table proves nothing for later; "" if it can.
        not_compared: What it did not compare, as sentences.
    """

    rows: int = 0
    proof: Proof = NO_PROOF
    changed_only: bool = False
    unprovable: str = ""
    not_compared: tuple[str, ...] = ()


_NOTHING = Proved()


def foreseen(seen: Seen, wishes: Wishes, *, back: bool = False) -> list[Step]:
    """The steps that would follow if each of them succeeds.

    An obstacle or a question is one of these steps. The list goes on as if the operator had removed
    the obstacle and answered yes.

    Args:
        seen: What a look found now.
        wishes: The operator's options.
        back: Whether the operator wants to go back.
    """
    steps: list[Step] = []
    if not back and seen.obstacles:
        steps.append(Step(Act.REFUSE, seen.obstacles))
        seen = replace(seen, obstacles=())
    while True:
        step = next_step_back(seen, wishes) if back else next_step(seen, wishes)
        steps.append(step)
        if step.act is Act.ASK:
            wishes = replace(
                wishes,
                confirmed=wishes.confirmed or step.reasons[0].code != "SM-6701",
                stopped=wishes.stopped or step.reasons[0].code == "SM-6701",
            )
        elif step.act in ENDS:
            return steps
        else:
            seen = after(seen, step)


def record_before(record: CutoverRecord, step: Step) -> CutoverRecord:
    """The record to store before a step, so that a killed call leaves its way back stored."""
    match step:
        case Step(act=Act.READ_ONLY, source=SourceSeen(name=name, before=before)):
            if all(made.source != name for made in record.read_only):
                return replace(record, read_only=(*record.read_only, MadeReadOnly(name, before)))
        case Step(act=Act.TIDY, tidied=Tidied() as tidied) if tidied not in record.tidied:
            return replace(record, tidied=(*record.tidied, tidied))
    return record


def record_after(
    record: CutoverRecord,
    step: Step,
    now: str,
    *,
    noted: tuple[NotedEnd, ...] = (),
    proved: Proved = _NOTHING,
) -> CutoverRecord:
    """The record to store after a step has succeeded.

    Args:
        record: The record that was stored before the step.
        step: The step.
        now: The present time, as text.
        noted: For ``NOTE``: the ends.
        proved: For ``COMPARE`` and ``PROVE``: what the comparison proved.
    """
    match step:
        case Step(act=Act.COMPARE):
            return replace(
                record,
                compared=now,
                proof=proved.proof,
                unprovable=proved.unprovable,
                not_compared=proved.not_compared,
            )
        case Step(act=Act.NOTE):
            return replace(record, noted=noted)
        case Step(act=Act.FORGET_ENDS):
            return replace(record, noted=(), passed=False, proven=False)
        case Step(act=Act.CATCH_UP):
            return replace(record, passed=True)
        case Step(act=Act.PROVE):
            return replace(
                record,
                proven=True,
                rows=proved.rows,
                proof=proved.proof,
                changed_only=proved.changed_only,
                not_compared=proved.not_compared,
            )
        case Step(act=Act.OPEN):
            return replace(record, opened=now)
        case Step(act=Act.TURN_BACK):
            return replace(record, undoing=True)
        case Step(act=Act.RESTORE):
            return replace(record, tidied=record.tidied[:-1])
        case Step(act=Act.WRITABLE, source=SourceSeen(name=name)):
            left = tuple(made for made in record.read_only if made.source != name)
            return replace(record, read_only=left)
        case Step(act=Act.FORGET):
            return CutoverRecord()
        case _:
            return record


def after(seen: Seen, step: Step) -> Seen:
    """What the next look finds if the step succeeds and nobody else changes anything."""
    noted = tuple(NotedEnd(source.name, BEGINNING) for source in seen.sources)
    record = record_after(record_before(seen.record, step), step, "later", noted=noted)
    seen = replace(seen, record=record)
    match step:
        case Step(act=Act.READ_ONLY, source=SourceSeen(name=name)):
            return _with_source(seen, name, read_only=True)
        case Step(act=Act.WRITABLE, source=SourceSeen(name=name)):
            return _with_source(seen, name, read_only=False)
        case Step(act=Act.CLOSE):
            return replace(seen, closed=True)
        case Step(act=Act.REOPEN):
            return replace(seen, closed=False)
        case Step(act=Act.COMPARE_BACK):
            return replace(seen, unchanged=True)
        case Step(act=Act.COMPARE):
            return replace(seen, fresh=True)
        case Step(act=Act.TIDY):
            return replace(seen, untidy=seen.untidy[1:])
        case _:
            return seen


def _with_source(seen: Seen, name: str, *, read_only: bool) -> Seen:
    sources = (replace(s, read_only=read_only) if s.name == name else s for s in seen.sources)
    return replace(seen, sources=tuple(sources))
