from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.holds.answers import Answers
from shardmerge.agents.pages.command_pages import (
    MOST_COMMANDS,
    CommandAsked,
    command_page,
    commands_page,
    login_page,
)
from shardmerge.agents.pages.render import Frame, holds_page, overview_page
from shardmerge.agents.pages.visitor import Visitor
from shardmerge.agents.status.command_log import AnsweredCommand
from shardmerge.schemas.model.errors import AccessDenied
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.example_pages import NOW_MS, ORDERS, example, orders, pipeline
from tests.unit.agents.pages.test_render import EVIL, Tags

NAME = str(ORDERS)
OLGA = Visitor("token", "olga", may_command=True, form_key="the-key", path="/x")


def frame(visitor: Visitor = OLGA) -> Frame:
    return Frame("shop", caught_up=True, revision=7, now_ms=NOW_MS, visitor=visitor)


def answer(kind: CommandKind, number: int) -> Decision:
    found = Answers(pipeline(), example().state.targets[ORDERS]).answer(kind, orders(number))
    assert found is not None
    return found


def skip(shown: Decision | None = None) -> str:
    asked = CommandAsked("skip", str(orders(7)))
    shown = shown or answer(CommandKind.SKIP, 7)
    return command_page(frame(), NAME, [EVIL], asked, answer=shown, seen="seen-text")


def test_what_the_agents_would_answer_is_shown_with_the_button_that_gives_it():
    page = skip()
    Tags(page)
    assert "released: s2/app.orders_7" in page
    assert 'name="seen" value="seen-text"' in page
    assert page.count('name="key" value="the-key"') == 3
    assert "Give this command: skip s2/app.orders_7" in page


def test_what_would_be_refused_has_no_button():
    page = skip(answer(CommandKind.SKIP, 1))
    Tags(page)
    assert "would refuse this command" in page
    assert 'value="give"' not in page


@pytest.mark.parametrize("visitor", [Visitor(), Visitor("token", path="/"), Visitor("proxy", "o")])
def test_who_may_not_command_sees_no_form_for_commands(visitor):
    asked = CommandAsked("skip", str(orders(7)))
    shown = answer(CommandKind.SKIP, 7)
    page = command_page(frame(visitor), NAME, [], asked, answer=shown, seen="x")
    Tags(page)
    assert "<form" not in page
    assert "You may not give commands here" in page
    assert ("Sign in" in page) == (visitor.access == "token")
    for other in (overview_page(frame(visitor), example().view.targets()),
                  holds_page(frame(visitor), NAME, [])):  # fmt: skip
        assert "<button" not in other


def test_a_command_with_a_text_says_what_must_be_written():
    assert CommandAsked("replace", "s").lacks.startswith("Write the ALTER TABLE")
    assert CommandAsked("replace", "s", "ALTER").lacks == ""
    assert CommandAsked("leave", "s").lacks == ""
    page = command_page(frame(), NAME, [], CommandAsked("set-schema", "s"))
    Tags(page)
    assert 'aria-describedby="lacks"' in page


def test_texts_of_others_are_escaped_everywhere():
    said = OperatorCommand(
        ChangeId("shop.commands", 3), ORDERS, CommandKind.REPLACE, orders(7), EVIL, by=EVIL
    )
    shown = replace(answer(CommandKind.SKIP, 7), reason=EVIL, hint=EVIL, warnings=(EVIL,))
    visitor = replace(OLGA, user=EVIL, path=f"/{EVIL}")
    pages = (
        commands_page(frame(visitor), NAME, [AnsweredCommand(said, shown)], 3),
        command_page(frame(visitor), NAME, [EVIL], CommandAsked("skip", EVIL, EVIL), answer=shown),
        login_page(frame(replace(visitor, user="")), EVIL, AccessDenied(EVIL, hint=EVIL)),
    )
    for page in pages:
        tags = Tags(page)
        assert tags.inline == []
        assert "<script>alert" not in page


def given(count: int, shown: Decision | None) -> list[AnsweredCommand]:
    return [
        AnsweredCommand(
            OperatorCommand(ChangeId("shop.commands", n), ORDERS, CommandKind.SKIP, orders(7),
                            by="olga", ts_ms=NOW_MS),
            shown,
        )
        for n in range(count, 0, -1)
    ]  # fmt: skip


def test_the_page_says_what_became_of_the_command_that_was_just_given():
    done, refused = answer(CommandKind.SKIP, 7), answer(CommandKind.SKIP, 1)
    for shown, told in (
        (done, "carried out the command skip s2/app.orders_7, as version"),
        (refused, "refused the command skip: SM-"),
        (None, "The agents have not answered it yet"),
    ):
        page = commands_page(frame(), NAME, given(2, shown), 2)
        Tags(page)
        assert told in page
    assert "has not read the command 9 yet" in commands_page(frame(), NAME, given(2, done), 9)
    assert "banner" not in commands_page(frame(), NAME, given(2, done))


def test_only_the_newest_commands_are_shown():
    page = commands_page(frame(), NAME, given(MOST_COMMANDS + 5, None))
    assert f"{MOST_COMMANDS} of {MOST_COMMANDS + 5}" in page
    assert f'id="c{MOST_COMMANDS + 5}"' in page
    assert 'id="c5"' not in page
    assert "Nobody has given" in commands_page(frame(Visitor()), NAME, [])


def test_signing_in_comes_back_to_the_page():
    nobody = Visitor("token", path="/target/merged.orders")
    assert "/login?back=/target/merged.orders" in overview_page(frame(nobody), [])
    page = login_page(frame(nobody), "/target/merged.orders")
    Tags(page)
    assert 'name="back" value="/target/merged.orders"' in page
    assert 'type="password"' in page
    assert "You are signed in as" in login_page(frame(), "/")
    assert "Nobody signs in here" in login_page(frame(Visitor()), "/")


def test_a_user_behind_a_proxy_can_sign_out_where_the_proxy_says():
    known = Visitor("proxy", "olga", sign_out="/oauth2/sign_out")
    page = overview_page(frame(known), [])
    Tags(page)
    assert '<a href="/oauth2/sign_out">Sign out</a>' in page
    assert "Sign out" not in overview_page(frame(Visitor("proxy", "olga")), [])
