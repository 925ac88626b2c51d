from __future__ import annotations

from shardmerge.cli.loads.load import in_words, lines, shown, watched
from shardmerge.cli.loads.load_shapes import ShownLoad
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from tests.unit.spark_sink.loading.loads import SHARD, done, load

OTHER = ShardId("s2", "app", "t")


def test_each_load_is_a_line() -> None:
    going = done(load(LoadKind.CHUNKS, "5"), 0)
    complete = done(load(shard=OTHER), 0, rows=1_500).proven()
    assert list(lines([complete, going], {})) == [
        "s1/app.t: 10 of about 20 rows; chunks: 1 of 2",
        "s2/app.t: complete, 1,500 rows",
    ]


def test_before_it_is_planned_the_servers_estimate_counts() -> None:
    one = Load(SHARD, load().target, 1, LoadKind.CHUNKS, 1).plan_next(("5",))
    assert list(lines([one], {SHARD: 900})) == [
        "s1/app.t: 0 of about 900 rows; chunks: 0, more to come"
    ]


def test_nothing_is_loaded() -> None:
    assert list(lines([], {})) == ["no shard is loaded by the sink"]


def test_loads_are_watched_until_they_are_complete() -> None:
    steps = [done(load(LoadKind.CHUNKS, "5"), 0), done(load(LoadKind.CHUNKS, "5"), 0, 1)]
    steps += [steps[-1].proven(), steps[-1]]
    now = iter(range(100))
    looks = iter(steps)
    told = list(
        watched(
            lambda: [next(looks)], {}, [load(LoadKind.CHUNKS, "5")], lambda _: None, now.__next__
        )
    )
    assert [(each.rows, each.total) for each in told] == [(10, 20), (20, 20), (20, 20)]
    assert in_words(told[0]) == "10 of about 20 rows (50%), 5 rows/s, about 2 s are left"


def test_json_has_the_parts_and_no_number_of_them_before_they_are_known() -> None:
    planned = done(load(LoadKind.CHUNKS, "5"), 0)
    begun = Load(OTHER, load().target, 1, LoadKind.CHUNKS, 1).plan_next(("5",))
    assert list(shown([begun, planned], {OTHER: 900})) == [
        ShownLoad("s1/app.t", complete=False, rows=10, total=20, chunks_done=1, chunks=2),
        ShownLoad("s2/app.t", complete=False, rows=0, total=900, chunks_done=0, chunks=None),
    ]
