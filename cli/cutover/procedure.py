"""The steps of a cut-over: what was seen decides which step is next. Pure.

Theory of operation. Before each step the command looks at everything anew, so the next call goes on
where a killed one ended. Each step may be repeated.

1. ``COMPARE``: all rows are compared while applications write to the shards. So nobody stops the
   applications for a target that differs. The call that makes the sources read-only first compares
   the rows that have changed since then (``proofs``). If the earlier comparison has become void,
   for example by DDL, it compares all rows once more.
2. ``READ_ONLY``: the sources refuse writes. This step is left out if the operator says that nobody
   writes.
3. ``NOTE``: the ends of the sources' binlogs are noted.
4. ``CATCH_UP``: the command waits until the target has applied everything up to these ends.
5. ``PROVE``: the rows that have changed since ``COMPARE`` are compared; all rows, if that
   comparison is no proof.
6. ``CLOSE``: the sink may not change the target any more. When the step ends, the sink has no open
   transaction there.
7. ``TIDY``: the table gets what applications need and loses what only the merging needed, one
   statement a step.
8. ``OPEN``: applications may write to the target.

After step 3, each look reads the binlogs behind the noted ends. A row or a DDL statement there that
concerns the target's shards makes the proof void. Then tidied statements are taken back
(``RESTORE``), the sink may change the target again (``REOPEN``), the noted ends are forgotten
(``FORGET_ENDS``), and the call ends. The last look comes after ``CLOSE``. So ``OPEN`` comes only if
nothing was written to the shards between the noted ends and that look.

The way back: ``COMPARE_BACK`` proves that applications have changed nothing in the target since
``OPEN``. It is left out if the operator vouches for that, or if ``OPEN`` was not reached. After
``TURN_BACK`` the command goes on only with ``--undo``. ``RESTORE`` takes the statements of step 7
back, ``REOPEN`` lets the sink go on, ``WRITABLE`` gives the sources their earlier settings, and
``FORGET`` removes the record.
"""

from __future__ import annotations

from dataclasses import replace

from .record import Tidied
from .seen import Act, Reason, Seen, SourceSeen, Step, Wishes


def next_step(seen: Seen, wishes: Wishes) -> Step:
    """The next step towards ``OPEN``."""
    record = seen.record
    if record.undoing:
        return Step(Act.REFUSE, (_TURNED_BACK,))
    if record.opened:
        return Step(Act.DONE, tuple(Reason("SM-6708", w, _LOST_HINT) for w in seen.written[:_MOST]))
    if not seen.sources:
        return Step(Act.REFUSE, (_NO_SHARD,))
    if record.noted and seen.written:
        return _void(seen)
    if seen.obstacles:
        return Step(Act.REFUSE, seen.obstacles)
    return _before_writes_stop(seen, wishes) or _after_writes_stop(seen)


def _before_writes_stop(seen: Seen, wishes: Wishes) -> Step | None:
    """The next step as long as somebody may write to the shards; None afterwards."""
    if not seen.record.compared:
        return Step(Act.COMPARE)
    final = [untidy for untidy in seen.untidy if not untidy.back]
    if final and not wishes.confirmed:
        return Step(Act.ASK, tuple(map(_final, final)))
    writable = [source for source in seen.sources if not source.read_only]
    if wishes.stopped or not writable:
        return None
    if not wishes.read_only:
        return Step(Act.ASK, (_asked(seen),))
    if not wishes.confirmed and (shared := _shared(writable)):
        return Step(Act.ASK, shared)
    is_first = not (seen.fresh or seen.record.read_only)
    if is_first and not seen.record.unprovable:
        return Step(Act.COMPARE)
    return Step(Act.READ_ONLY, source=writable[0], statements=read_only_sql(writable[0]))


def _after_writes_stop(seen: Seen) -> Step:
    """The next step when nobody is to write to the shards any more."""
    record = seen.record
    if not record.noted:
        return Step(Act.NOTE)
    if not record.passed:
        return Step(Act.CATCH_UP)
    if not record.proven:
        return Step(Act.PROVE)
    if not seen.closed:
        return Step(Act.CLOSE)
    if seen.untidy:
        first = seen.untidy[0]
        return Step(Act.TIDY, statements=(first.sql,), tidied=first)
    return Step(Act.OPEN)


def next_step_back(seen: Seen, wishes: Wishes) -> Step:
    """The next step of the way back."""
    record = seen.record
    if not record.is_begun:
        return Step(Act.DONE)
    ours = {made.source for made in record.read_only}
    others = [s for s in seen.sources if s.name in ours and s.handed_over]
    if others and not wishes.confirmed:
        return Step(Act.ASK, tuple(map(_handed_over, others)))
    for tidied in record.tidied:
        if not tidied.back:
            return Step(Act.REFUSE, (_gone(tidied),))
    if record.opened and not (seen.unchanged or wishes.unproven):
        return Step(Act.COMPARE_BACK)
    if not record.undoing:
        return Step(Act.TURN_BACK)
    if record.tidied:
        last = record.tidied[-1]
        return Step(Act.RESTORE, statements=(last.back,), tidied=last)
    if seen.closed:
        return Step(Act.REOPEN)
    for made in record.read_only:
        source = next((s for s in seen.sources if s.name == made.source), SourceSeen(made.source))
        source = replace(source, before=made.before)
        return Step(Act.WRITABLE, source=source, statements=writable_sql(source))
    return Step(Act.FORGET)


def read_only_sql(source: SourceSeen) -> tuple[str, ...]:
    """The SQL that makes a source refuse writes. MariaDB has no ``super_read_only``."""
    variable = "read_only" if source.flavour == "mariadb" else "super_read_only"
    return (f"SET GLOBAL {variable} = ON",)


def writable_sql(source: SourceSeen) -> tuple[str, ...]:
    """The SQL that gives a source its earlier settings back."""
    return tuple(f"SET GLOBAL {name} = {value}" for name, value in source.before)


def _void(seen: Seen) -> Step:
    """The next step after something was written behind the noted ends."""
    final = next((t for t in seen.record.tidied if not t.back), None)
    if final is not None:
        told = "; ".join(seen.written[:_MOST])
        return Step(Act.REFUSE, (Reason("SM-6709", f"{told}: {_LATE}", _LATE_HINT),))
    if seen.record.tidied:
        last = seen.record.tidied[-1]
        return Step(Act.RESTORE, statements=(last.back,), tidied=last)
    if seen.closed:
        return Step(Act.REOPEN)
    reasons = (Reason("SM-6708", text, _WRITTEN_HINT) for text in seen.written[:_MOST])
    return Step(Act.FORGET_ENDS, tuple(reasons))


_MOST = 5
_WRITTEN_HINT = (
    "find who still writes there, and stop it. Then run the command again: it notes the ends of "
    "the binlogs anew"
)
_LOST_HINT = (
    "the target was handed over before, and does not get it: stop who writes to the shards, then "
    "write these rows into the target by hand"
)
_LATE = (
    "that is behind the noted end. The sink cannot apply it, because the target has no origin "
    "columns any more"
)
_LATE_HINT = "stop who writes to the shards, then write these rows into the target by hand"
_TURNED_BACK = Reason(
    "SM-6710",
    "an earlier call with --undo began the way back, and did not end it",
    "complete it with `shardmerge cutover --undo`; then a new cut-over can begin",
)

_NO_SHARD = Reason(
    "SM-6705",
    "the target has no live shard, so nothing can be compared",
    "`shardmerge status` shows the shards. If there is none, only the target has rows, and "
    "applications can use it",
)


def _asked(seen: Seen) -> Reason:
    names = ", ".join(source.name for source in seen.sources if not source.read_only)
    return Reason(
        "SM-6701",
        f"everything is ready. Now the writes to the shards on {names} have to stop",
        "run the command again with --read-only: it makes the sources refuse writes. Or stop the "
        "applications, and run it again with --stopped",
    )


def _shared(sources: list[SourceSeen]) -> tuple[Reason, ...]:
    return tuple(
        Reason(
            "SM-6702",
            f"with source {source.name} read-only, writes for {', '.join(source.shared)} stop, too",
            "add --yes if these writes may stop. Or stop only the writes for this target yourself, "
            "and use --stopped",
        )
        for source in sources
        if source.shared
    )


def _handed_over(source: SourceSeen) -> Reason:
    others = ", ".join(source.handed_over)
    return Reason(
        "SM-6721",
        f"source {source.name} would take writes again, but {others} was cut over from it, too",
        f"add --yes if nobody writes to the shards of {others}; otherwise take that back first",
    )


def _final(untidy: Tidied) -> Reason:
    return Reason(
        "SM-6703",
        f"after {untidy.sql!r} there is no way back",
        "add --yes if you need no way back; otherwise leave out --drop origin",
    )


def _gone(tidied: Tidied) -> Reason:
    return Reason(
        "SM-6711",
        f"there is no way back: {tidied.sql!r} was executed, and its values are gone",
        "let the applications go on with the target; a new pipeline can merge the shards again "
        "from the beginning",
    )
