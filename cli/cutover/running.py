"""Carries out the steps of a cut-over, one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shardmerge.cli.validation.inputs.line_passing import LinePassing
from shardmerge.cli.validation.report import shortfalls
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.cli.validation.target_run import Limits
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.formats.stored_record import iso_time
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.validation.proofs import NO_PROOF, Proof

from .cutover_shapes import CutoverStep
from .foreseen import Proved, foreseen, record_after, record_before
from .looks import Looks
from .procedure import next_step, next_step_back
from .proving import Proving
from .record import CutoverRecord, NotedEnd
from .report import step_of
from .seen import ENDS, Act, Reason, Seen, Step, Wishes
from .target_server import TargetServer

_COMPARISONS = frozenset({Act.COMPARE, Act.PROVE, Act.COMPARE_BACK})
_NOTED = "before the noted ends"
_NOW = "by then. No source was made read-only"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended.

    Attributes:
        seen: The last look, with the record that is stored now.
        steps: The steps that were carried out, or would be.
        reasons: What has to be done first; empty when the call has reached its end.
    """

    seen: Seen
    steps: tuple[CutoverStep, ...]
    reasons: tuple[Reason, ...]


class CutoverRun:
    """One call of the command.

    Args:
        pipeline: The pipeline of the target.
        target: The target that is cut over.
        server: The target's server.
        looks: Finds out what the next step depends on.
        wishes: The operator's options.
        limits: The limits of comparisons, and of the wait for the target.
        by: Who gives the command.
        say: Called with each step before the step is carried out.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        target: TargetTable,
        server: TargetServer,
        looks: Looks,
        *,
        wishes: Wishes,
        limits: Limits,
        by: str,
        say: Callable[[CutoverStep], None],
    ) -> None:
        self._pipeline, self._target, self._server = pipeline, target, server
        self._looks, self._wishes, self._limits = looks, wishes, limits
        self._by, self._say = by, say
        self._unchanged = self._fresh = False

    def rehearse(self, *, back: bool) -> Ended:
        """The steps that would follow. Nothing is changed.

        Raises:
            ShardMergeError: A server, Kafka or Kafka Connect does not answer.
        """
        seen = self._looks.look(back=back)
        steps = foreseen(seen, self._wishes, back=back)
        reasons = tuple(reason for step in steps for reason in step.reasons)
        return Ended(seen, tuple(step_of(step, done=False) for step in steps), reasons)

    def run(self, *, back: bool) -> Ended:
        """Carry out steps until nothing is left to do, or something has to be done first.

        Raises:
            ShardMergeError: A server, Kafka or Kafka Connect does not answer, or refuses.
        """
        done: list[CutoverStep] = []
        while True:
            seen = self._looks.look(back=back, unchanged=self._unchanged, fresh=self._fresh)
            step = next_step_back(seen, self._wishes) if back else next_step(seen, self._wishes)
            shown = step_of(step, done=True)
            if step.act in (Act.REFUSE, Act.ASK, Act.DONE):
                return Ended(seen, tuple(done), step.reasons)
            self._say(shown)
            seen, reasons = self._carry_out(seen, step)
            if reasons:
                return Ended(seen, tuple(done), reasons)
            done.append(shown)
            if step.act in ENDS:
                return Ended(seen, tuple(done), step.reasons)

    def _carry_out(self, seen: Seen, step: Step) -> tuple[Seen, tuple[Reason, ...]]:
        """Carry out a step, and store what it has changed. Returns why it did not succeed."""
        record = seen.record
        if not record.is_begun:
            record = replace(record, by=self._by, begun=_now())
        prepared = record_before(record, step)
        if prepared != seen.record:
            self._server.keep(prepared)
        noted: tuple[NotedEnd, ...] = ()
        proved = Proved()
        if step.act in _COMPARISONS:
            report, proved = self._compared(step.act, record.proof)
            if reason := _differs(report, step.act):
                return replace(seen, record=prepared), (reason,)
            proved = replace(proved, not_compared=report.left_out)
            self._unchanged = step.act is Act.COMPARE_BACK
            self._fresh = self._fresh or step.act is Act.COMPARE
        elif step.act is Act.NOTE:
            noted = self._noted()
        elif step.act is Act.CATCH_UP:
            ends = {end.source: end.position for end in record.noted}
            if reasons := self._late(ends, _NOTED):
                return replace(seen, record=prepared), reasons
        else:
            if self._stops_writes(step, record) and (reasons := self._behind()):
                return replace(seen, record=prepared), reasons
            self._change(step)
        stored = record_after(prepared, step, _now(), noted=noted, proved=proved)
        if step.act is not Act.FORGET and stored != prepared:
            self._server.keep(stored)
        reasons = self._behind() if step.act is Act.COMPARE else ()
        return replace(seen, record=stored), reasons

    def _stops_writes(self, step: Step, record: CutoverRecord) -> bool:
        """Whether a step is the first to stop writes, and no comparison of this call looked."""
        return step.act is Act.READ_ONLY and not (self._fresh or record.read_only)

    def _change(self, step: Step) -> None:
        match step.act:
            case Act.READ_ONLY | Act.WRITABLE:
                self._looks.sources.execute(step)
            case Act.CLOSE:
                self._server.store.close()
            case Act.REOPEN:
                self._server.store.reopen()
            case Act.FORGET:
                self._server.store.forget()
            case Act.TIDY | Act.RESTORE:
                for statement in step.statements:
                    self._server.execute(statement)
            case _:
                pass  # only the record changes

    def _compared(self, act: Act, proof: Proof) -> tuple[ValidatedTarget, Proved]:
        """Compare as a step needs it.

        Args:
            act: The step.
            proof: Of an earlier comparison. On the way back it says nothing: an application may
                have changed any row of the target.
        """
        proving = Proving(
            self._pipeline,
            self._target,
            self._looks.facts,
            self._limits,
            pass_commits=self._server.store.pass_commits,
            bounded=self._wishes.bounded,
        )
        if act is Act.COMPARE:
            return proving.under_traffic(proof)
        return proving.compare(NO_PROOF if act is Act.COMPARE_BACK else proof, still=True)

    def _noted(self) -> tuple[NotedEnd, ...]:
        found = self._passing().note()
        assert isinstance(found, dict)
        ends: dict[str, SourcePosition] = found
        return tuple(NotedEnd(name, ends[name]) for name in sorted(ends))

    def _passing(self) -> LinePassing:
        shards: list[ShardId] = self._looks.shards()
        return LinePassing(self._pipeline, shards, self._limits.patience_s)

    def _behind(self) -> tuple[Reason, ...]:
        """Whether the line is so late that applications would wait for it if writes stopped now.

        Rows that are not in Kafka yet are seen by their connector's position alone.
        """
        return self._late(self._passing().note(), _NOW)

    def _late(self, ends: object, written: str) -> tuple[Reason, ...]:
        """Why the target has not passed the ends of the sources' binlogs; empty if it has."""
        if self._passing().passed(ends):
            return ()
        reason = Reason(
            "SM-6717",
            f"after {self._limits.patience_s:.0f} s the target has not applied everything that the "
            f"sources had written {written}",
            "`shardmerge status` shows whether connectors and sink run. Then run the command "
            "again; a larger --patience makes it wait longer",
        )
        return reason, *self._looks.silent_sink()


def _differs(report: ValidatedTarget, act: Act) -> Reason | None:
    """Why a comparison proves nothing; None when all rows were compared and are equal."""
    if report.is_clean:
        return None
    text = f"{report.target}: {shortfalls(report)}"
    if act is Act.COMPARE_BACK and report.differences:
        return Reason(
            "SM-6712",
            f"{text}. Applications have written to the target, or somebody to the shards",
            "the shards do not have what applications wrote to the target, so there is no way "
            "back: let the applications go on with the target",
        )
    if act is Act.COMPARE_BACK:
        return Reason(
            "SM-6722",
            f"{text}. So nothing proves that no application has written to the target",
            "rows that somebody wrote to the shards after the cut-over wait in Kafka. If you know "
            "that no application wrote to the target, --unproven goes back without a proof",
        )
    hint = f"`shardmerge validate {report.target}` lists them, and --repair repairs them"
    return Reason("SM-6716", text, hint)


def _now() -> str:
    return iso_time(now_ms())
