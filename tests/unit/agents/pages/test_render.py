from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from shardmerge.agents.holds.answers import Answers
from shardmerge.agents.holds.reports import hold_reports
from shardmerge.agents.pages.plots import parts
from shardmerge.agents.pages.render import (
    MOST_ENTRIES,
    Asked,
    Frame,
    holds_page,
    missing_page,
    overview_page,
    target_page,
)
from shardmerge.agents.status.connector_log import ConnectorLog, ConnectorsView
from shardmerge.agents.status.view import SinksView, StatusView, TargetView
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import (
    Decision,
    JoinedSchema,
    Outcome,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.schemas.records.validations import DifferingRows, TargetValidation
from tests.example_pages import (
    ITEMS,
    NOW_MS,
    ORDERS,
    ExampleLine,
    compared,
    example,
    failing,
    items,
    orders,
    pipeline,
    wide,
)

FRAME = Frame("shop", caught_up=True, revision=7, now_ms=NOW_MS)
EVIL = "<script>alert('x')</script>\"&{{ 7 * 7 }}"


class Tags(HTMLParser):
    """Every tag and text that a browser would see; unclosed tags and doubled ids fail."""

    VOID = frozenset(("meta", "br", "link", "input", "polyline"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.inline: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))
        self.text = re.sub(r"\s+", " ", " ".join(self.texts))

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        named = dict(attrs)
        if "id" in named:
            self.ids.append(named["id"])
        self.inline += [name for name in named if name == "style" or name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def target_of(line: ExampleLine, name=ORDERS) -> TargetView:
    found = line.view.target(str(name))
    assert found is not None
    return found


def foreign(text: str) -> StatusView:
    """A view in which every text that comes from outside is this one."""
    column = ShardColumn("x#1", Column(text, ColumnType("int")))
    table = TargetTable("merged", text)
    shard = ShardId("s1", "shop", text)
    statement = TargetStatement(text, StatementKind.EXPANDING, text, ("table", f"column:{text}"))
    first = Decision(
        ChangeId("s1", 1), table, 1, shard, SourcePosition(0, text, 1, 0), Outcome.EMIT,
        (statement,), reason=text, columns=(column,), ddl=text,
    )  # fmt: skip
    second = replace(
        first, version=2, outcome=Outcome.HOLD, statements=(), hint=text, conflict=text,
        warnings=(text,), pauses=(shard,), columns=(),
    )  # fmt: skip
    view = StatusView()
    for record in (
        first,
        second,
        JoinedSchema(table, 2, (column,), TableSchema((column.column,)), 1),
        SinkProgress(
            table,
            1,
            1234,
            (StatementProgress(2, 0, text, StatementKind.CONTRACTING, "refused", text),),
            (ShardProgress(shard, 5, text, text, SourcePosition(0, text, 1, 0), 0, 0, 4_321),),
            failure=FailureProgress(text, text, text, 12, 1_000),
        ),
        replace(first, version=0, target=None, outcome=Outcome.IGNORED),
        TargetValidation(
            table,
            1,
            1_000,
            2_000,
            False,
            30,
            2,
            missing=1,
            extra=1,
            key=(text,),
            only=(shard,),
            stopped=text,
            left_out=(text,),
            differing=(DifferingRows("missing", shard, 1, ((text,),)),),
        ),
    ):
        view.apply(record)
    return view


@pytest.mark.parametrize("text", [EVIL, "a`b", "数据"])
def test_every_page_is_well_formed_and_shows_foreign_text_as_text(text):
    view = foreign(text)
    (target,) = view.targets()
    for page in (
        overview_page(FRAME, view.targets(), view.ignored()),
        target_page(FRAME, target, Asked(text, every_column=True)),
        missing_page(FRAME, text),
    ):
        tags = Tags(page)
        assert tags.seen.count("script") == 2
        assert "49" not in tags.text
        assert text in " ".join(tags.texts)


def test_no_page_has_a_script_or_a_style_inside():
    """The policy that is sent with every page forbids both."""
    for page in (
        overview_page(FRAME, example().view.targets()),
        target_page(FRAME, target_of(example())),
    ):
        tags = Tags(page)
        assert tags.inline == []
        assert "style" not in tags.seen
        assert re.findall(r"<script[^>]*>([^<]+)</script>", page) == []


def test_the_overview_has_the_worst_target_first_and_says_how_many_need_somebody():
    line = example()
    text = Tags(overview_page(FRAME, line.view.targets())).text
    assert "1 of 2 targets needs somebody" in text
    assert text.index("merged.orders") < text.index("merged.items")
    failing(line, NOW_MS)
    text = Tags(overview_page(FRAME, line.view.targets())).text
    assert "2 of 2 targets need somebody" in text
    assert text.index("merged.items") < text.index("merged.orders")


def test_the_overview_tells_of_each_target_whether_its_rows_differ():
    line = example()
    assert Tags(overview_page(FRAME, line.view.targets())).text.count("never") == 2
    compared(line, NOW_MS)
    text = Tags(overview_page(FRAME, line.view.targets())).text
    told = "32 rows differ 3 h ago, before the latest statement; a later one is not complete"
    assert told in text
    assert "equal 50 s ago" in text
    assert "SM-4414: 32 rows differ" in text


def test_the_page_tells_which_rows_differ_and_what_repairs_them():
    line = example()
    compared(line, NOW_MS)
    page = target_page(FRAME, target_of(line))
    text = Tags(page).text.partition("The latest comparison, not of all rows")[2]
    text = text.partition("Rows per second")[0]
    for told in (
        "59 min 51 s ago", "SM-4411: source s2: Lost connection to MySQL server",
        "The latest comparison of all rows: 3 h ago", "The target got a statement since then.",
        "1,204,311 rows of 11 shards", "1 shard could not be compared",
        "4730 and 9 more", "s2/app.orders_5 missing 2 17 ; 205",
        "no shard that no shard has 1 90017", "is not compared: it is paused",
        "shardmerge validate merged.orders --pipeline FILE --repair reread",
        "shardmerge validate merged.orders --pipeline FILE --repair sql",
    ):  # fmt: skip
        assert told in text
    equal = Tags(target_page(FRAME, target_of(line, ITEMS))).text
    assert "All rows that were compared are equal." in equal
    assert "--repair" not in equal


def test_the_page_of_a_target_that_was_never_compared_says_how_to():
    text = Tags(target_page(FRAME, target_of(example(), ITEMS))).text
    assert "No comparison of this target is known." in text
    assert "shardmerge validate merged.items --pipeline FILE" in text


def test_the_page_tells_of_an_old_comparison_and_of_asked_readings():
    line = example()
    found = TargetValidation(
        ITEMS, 6, NOW_MS - 9 * 86_400_000, NOW_MS - 8 * 86_400_000, True, 9, 3, missing=1,
        differing=(DifferingRows("missing", items(0), 1, (("1",),)),), readings=1,
    )  # fmt: skip
    line.view.apply(found)
    text = Tags(target_page(FRAME, target_of(line, ITEMS))).text
    assert "The latest comparison of all rows: 8 d ago" in text
    assert "This was long ago" in text
    assert "asked for 1 reading of rows that differ" in text


def test_the_page_of_a_target_that_was_cut_over_offers_no_repair():
    line = example()
    line.view.apply(TargetValidation(ITEMS, 6, NOW_MS, NOW_MS, True, 9, 3, extra=1))
    shards = (ShardProgress(items(0), 5, "the target was cut over", code="SM-1617"),)
    line.view.apply(SinkProgress(ITEMS, 6, 1, (), shards, NOW_MS))
    page = target_page(FRAME, target_of(line, ITEMS))
    assert "nothing here is to be repaired" in Tags(page).text
    assert "--repair" not in page


def test_an_overview_on_which_everything_flows_says_so():
    (items, _) = example().view.targets()
    assert "Everything flows: 1 target." in Tags(overview_page(FRAME, [items])).text


def connectors(state: str, reason: str = "", seconds_ago: int = 9) -> ConnectorsView:
    """What a worker knows of the connectors if that of ``s1`` is in a state."""
    log = ConnectorLog()
    runs = ConnectorState("s2", "shop.s2", "RUNNING")
    failed = ConnectorState("s1", "shop.s1", state, reason)
    log.take((failed, runs), NOW_MS - seconds_ago * 1000)
    return log.view


def test_an_overview_does_not_say_that_everything_flows_while_a_connector_does_not_run():
    (items, _) = example().view.targets()
    text = Tags(overview_page(FRAME, [items], connectors=connectors("RUNNING"))).text
    assert "Everything flows: 1 target." in text
    assert "All 2 connectors run." in text
    evil = connectors("FAILED", EVIL)
    text = Tags(overview_page(FRAME, [items], connectors=evil)).text
    assert "Everything flows" not in text
    assert "1 of 2 connectors does not run, so no new rows of s1 come." in text
    assert "1 of 1 target needs somebody" in text
    assert f"connector shop.s1 is FAILED: {EVIL}" in text
    assert text.count("SM-4313") == 1
    assert "for 9 s, since" in text
    assert "shardmerge connect restart s1 --pipeline FILE" in text
    assert "connectors run." not in text


def test_a_target_whose_source_is_not_read_says_so():
    text = Tags(target_page(FRAME, target_of(example(), ITEMS), Asked(), connectors("PAUSED"))).text
    assert "All rows flow" not in text
    assert "connector shop.s1 is PAUSED" in text
    assert "Lag, at least not known" in text


def test_a_failed_connector_is_told_before_there_is_a_target():
    text = Tags(overview_page(FRAME, (), connectors=connectors("FAILED", "no binlog"))).text
    assert "No decision yet" in text
    assert "1 of 2 connectors does not run" in text
    assert "connector shop.s1 is FAILED: no binlog" in text


def test_an_overview_says_since_when_connect_does_not_answer():
    log = ConnectorLog()
    log.miss("Kafka Connect at http://c:1 cannot be reached", "", "SM-4304", NOW_MS - 60_000)
    (items, _) = example().view.targets()
    text = Tags(overview_page(FRAME, [items], connectors=log.view)).text
    assert "Everything flows" not in text
    assert "Kafka Connect does not answer since 2026-11-18" in text
    assert "SM-4304: This worker does not know whether the connectors run" in text
    assert "need somebody" not in text


def test_the_overview_says_which_sink_writes_and_which_stand_by():
    view = example().view

    def shown(standbys, seconds_ago=1):
        sinks = SinksView("10.0.0.5", standbys, NOW_MS - seconds_ago * 1000)
        text = Tags(overview_page(FRAME, view.targets(), (), sinks)).text
        return re.sub(r" (?=[.,])", "", text)

    assert "The sink on 10.0.0.5 writes. None stands by." in shown(())
    assert "1 sink stands by: 10.0.0.6." in shown(("10.0.0.6",))
    assert "2 sinks stand by: 10.0.0.6, <b>." in shown(("10.0.0.6", "<b>"))
    late = shown(("10.0.0.6",), seconds_ago=181)
    assert "No sink has reported since" in late
    assert "writes" not in late
    assert "Sinks" not in Tags(overview_page(FRAME, view.targets())).text


def test_a_sink_that_died_is_told_by_the_pages_before_anything_else():
    view = example().view
    later = replace(FRAME, now_ms=NOW_MS + 6 * 3_600_000)
    text = Tags(overview_page(later, view.targets())).text
    assert "2 of 2 targets need somebody" in text
    assert "flows" not in text
    items = Tags(target_page(later, target_of(example(), ITEMS))).text
    assert "SM-6723: The sink does not report this target any more" in items
    assert "for 6 h, since" in items
    assert "Lag, at least not known" in items
    assert "It is not known what waits" in items
    assert "All rows flow" not in items
    assert ": now " not in items


def test_a_new_target_waits_for_the_first_report_and_then_needs_somebody():
    line = ExampleLine(pipeline())
    line.table(orders(0), "id INT PRIMARY KEY")
    soon, late = (replace(FRAME, now_ms=line.now_ms + ms) for ms in (1_000, 181_000))
    assert "1 target waits" in Tags(overview_page(soon, line.view.targets())).text
    page = Tags(target_page(soon, target_of(line))).text
    assert "The sink has not reported on this target yet" in page
    assert "It is not known what waits" in page
    assert "1 of 1 target needs somebody" in Tags(overview_page(late, line.view.targets())).text


def test_an_empty_pipeline_says_what_it_waits_for():
    assert "No decision yet" in overview_page(FRAME, ())
    frame = replace(FRAME, caught_up=False)
    assert "not complete yet" in overview_page(frame, ())


def test_the_page_tells_state_reason_since_when_and_what_helps():
    text = Tags(target_page(FRAME, target_of(example()))).text
    assert "SM-1201: column level, type: date and int" in text
    assert "for 5 h 14 min, since 2026-11-18" in text
    assert "make the type of level agree on all shards" in text
    assert "shardmerge command resume --pipeline FILE --shard s2/app.orders_9" in text


def test_the_page_tells_who_waits_for_whom():
    text = Tags(target_page(FRAME, target_of(example()))).text
    assert "waits for rows of s2/app.orders_7 before plan.000001:5" in text
    assert "waits for the target to reach version 19" in text


def test_the_plots_have_axes_with_units_and_the_numbers_as_a_table():
    target = target_of(example())
    page = target_page(FRAME, target)
    part = page[page.index('id="rates"') : page.index('id="timeline"')]
    labels = [re.findall(rf'class="{kind}"[^>]*>([^<]+)<', part) for kind in ("unit", "time")]
    assert labels[0] == ["rows/s", "rows", "s"]
    assert {text[-3:] for text in labels[1]} == {":00"}
    told = re.findall('aria-label="([^"]+)"', part)
    assert told[0].startswith("Rows per second: now ")
    assert told[2] == "Lag: now 158, at most 158 s. The table below has the numbers."
    assert part.count('<tr><th scope="row">') == len(parts(target.samples)) > 8


def test_the_time_line_tells_execution_shard_by_shard():
    text = Tags(target_page(FRAME, target_of(example()))).text
    part = text[text.index("Changes, shard by shard") : text.index("Decisions, newest first")]
    level = part[part.index("ADD COLUMN level INT") :]
    assert "5 of 12 live shards made this change" in level
    assert "passed 4 shards: s1/app.orders_0" in level
    assert "2 s to 6 s after the change" in level
    assert "6 shards have not made it: s1/app.orders_10" in level
    rename = part[part.index("RENAME COLUMN customer") : part.index("MODIFY total BIGINT")]
    assert "waits at the gate 1 shard: s2/app.orders_1" in rename
    assert "SM-1601: waits for the target to reach version 19" in rename
    assert "for 30 s, since" in rename
    assert "261 rows at most" in rename


def test_the_time_line_tells_which_shards_do_not_have_a_changed_column():
    line = ExampleLine(pipeline())
    for number in range(3):
        line.table(orders(number), "id INT PRIMARY KEY" + (", b INT" if number < 2 else ""))
    line.run(orders(0), "ALTER TABLE orders_0 MODIFY b BIGINT")
    text = Tags(target_page(FRAME, target_of(line))).text
    assert "1 shard has not made it: s2/app.orders_1" in text
    assert "1 shard does not have the column: s1/app.orders_2" in text
    assert "another definition" not in text


def test_the_time_line_tells_which_shards_a_ddl_lock_waits_for():
    line = ExampleLine(pipeline("pessimistic"))
    for number in range(3):
        line.table(orders(number), "id INT PRIMARY KEY")
    line.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN level INT")
    held = target_of(line).held[0]
    told = ShardProgress(
        held.shard, 5, held.reason, held.hint, held.position, NOW_MS - 60_000, 7, code=held.code
    )
    line.view.apply(SinkProgress(ORDERS, 4, 0, (), (told,), NOW_MS))
    text = Tags(target_page(FRAME, target_of(line))).text
    part = text[text.index("Changes, shard by shard") : text.index("Decisions, newest first")]
    assert "waits for the lock 1 shard: s1/app.orders_0 for 1 min, since" in part
    assert "SM-1213: waits for the DDL lock of merged.orders" in part
    assert "2 shards have not made it: s1/app.orders_2 , s2/app.orders_1" in part


def test_a_change_on_a_thousand_shards_stays_short():
    """The page names the first shards of each state, and keeps others folded up."""
    line = ExampleLine(pipeline())
    for number in range(1_000):
        line.table(orders(number), "id INT PRIMARY KEY")
    before = len(target_page(FRAME, target_of(line)).encode())
    for number in range(900):
        line.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN level INT", 1)
    shards = tuple(ShardProgress(orders(number), 5) for number in range(1_000))
    line.view.apply(SinkProgress(ORDERS, 1_900, 0, (), shards, NOW_MS))
    page = target_page(FRAME, target_of(line))
    text = Tags(page).text
    assert "900 of 1,000 live shards made this change" in text
    assert "passed 900 shards:" in text
    assert "100 shards have not made it:" in text
    assert len(page.encode()) < before + 60_000


def test_the_page_of_holds_tells_since_when_as_the_other_pages_do():
    line = example()
    reports = list(
        hold_reports(
            Answers(line.line.pipeline, line.state.targets[ORDERS]),
            {21: NOW_MS - 5_400_000},
            Path("/etc/shop.toml"),
            None,
        )
    )
    text = Tags(holds_page(FRAME, str(ORDERS), reports)).text
    assert "for 1 h 30 min, since 2026-11-18 09:36:40 UTC" in text
    assert "Choose another shard" not in text


def test_the_page_of_a_target_that_flows_says_so():
    text = Tags(target_page(FRAME, target_of(example(), ITEMS))).text
    assert "All rows flow, and nothing waits." in text
    assert "Every shard has every column" in text
    assert "Nothing waits: every decided statement is executed" in text


def test_the_search_stays_in_the_form_and_in_the_links():
    page = target_page(FRAME, target_of(example()), Asked("orders_1"))
    assert 'value="orders_1"' in page
    assert "3 of 12 shards in 2 groups" in Tags(page).text


def test_groups_that_do_not_fit_are_on_the_next_part():
    view = wide(200, 60, odd=2).target(str(ORDERS))
    assert view is not None
    page = target_page(FRAME, view, Asked(search="app", every_column=True))
    assert "?search=app&amp;page=2&amp;columns=all#matrix" in page
    assert re.search("part 1 of [234]:", Tags(page).text)


def test_older_decisions_are_on_another_part():
    view = wide(100, 3).target(str(ORDERS))
    assert view is not None
    page = target_page(FRAME, view)
    assert f"?older={MOST_ENTRIES}#timeline" in page
    assert "Older decisions" not in target_page(FRAME, view, Asked(older=MOST_ENTRIES))


def test_a_page_of_ten_thousand_shards_and_fifty_columns_is_below_a_megabyte():
    view = wide(10_000, 50).target(str(ORDERS))
    assert view is not None
    page = target_page(FRAME, view, Asked(every_column=True))
    assert len(page.encode()) < 1_000_000
    assert "10,000 of 10,000 shards in 100 groups" in Tags(page).text
