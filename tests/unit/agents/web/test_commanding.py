"""Commands from the pages and from ``/api``: shown first, then given, answered or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.schemas.records.operator_commands import CommandKind
from tests.access_pages import IVAN, OLGA, with_tokens
from tests.example_pages import ORDERS, orders
from tests.unit.agents.web.commanded_pages import API, COMMAND, HELD, SKIP, Site, on


def test_a_user_who_signed_in_gives_a_command_that_was_shown_first(tmp_path: Path, told) -> None:
    async def play(site: Site) -> None:
        assert await site.sign_in() == 303
        held = await site.form(f"/target/{ORDERS}/holds")
        assert '<input type="hidden" name="kind" value="skip">' in held.text
        shown = await site.form()
        assert shown.status == 200
        assert "What the agents would answer now" in shown.text
        assert site.given.commands == []
        done = await site.send(shown.giving())
        assert (done.status, done.location.partition("?")[0]) == (303, f"/target/{ORDERS}/commands")
        [said] = site.given.commands
        assert (said.kind, said.shard, said.by) == (CommandKind.SKIP, orders(7), "olga")
        after = await site.form(done.location)
        assert "The agents carried out the command skip" in after.text
        assert '<td role="cell" data-label="Who">olga</td>' in after.text

    on(with_tokens(tmp_path), play)
    events = told()
    assert [event for event, _ in events] == ["login_accepted", "command_given"]
    fields = events[1][1]
    assert (fields["by"], fields["client_address"]) == ("olga", "127.0.0.1")
    assert fields["operation"] == f"skip {HELD}"


def test_a_command_that_is_not_answered_yet_is_shown_as_such(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        done = await site.send((await site.form()).giving())
        assert "have not answered it yet" in (await site.form(done.location)).text

    on(with_tokens(tmp_path), play, answers=False)


def test_what_changed_meanwhile_is_shown_again_and_not_given(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        shown = await site.form()
        site.line.run(orders(3), "ALTER TABLE orders_3 MODIFY note TEXT")
        site.line.run(orders(7), "ALTER TABLE orders_7 ADD COLUMN more INT")
        present = site.given._present
        present.take(site.line.state)
        again = await site.send(shown.giving())
        assert again.status == 409
        assert "SM-6910" in again.text
        assert again.value("seen") not in ("", shown.value("seen"))
        assert site.given.commands == []
        assert (await site.send(again.giving())).status == 303

    on(with_tokens(tmp_path), play)


def test_a_command_that_would_be_refused_has_no_button_and_is_not_given(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        flowing = "s2/app.orders_1"
        shown = await site.form(f"{COMMAND}?kind=skip&shard={flowing}")
        assert "The agents would refuse this command" in shown.text
        assert 'value="give"' not in shown.text
        sent = shown.giving() | {"shard": flowing, "key": shown.value("key")}
        answer = await site.send(sent)
        assert answer.status == 409
        assert "SM-6911" in answer.text
        assert site.given.commands == []

    on(with_tokens(tmp_path), play)


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"kind": "wobble", "shard": HELD}, "SM-5601: there is no command wobble"),
        ({"kind": "adopt"}, "SM-5601: there is no command adopt"),
        ({"kind": "skip"}, "SM-5601: skip needs a shard"),
        ({"kind": "skip", "shard": "x"}, "SM-5601: a shard is source/database.table"),
        ({"kind": "disable", "shard": HELD}, "SM-5601: disable takes no shard"),
    ],
)
def test_a_form_that_is_no_command_is_told(tmp_path: Path, form: dict[str, str], code: str) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        key = (await site.form(COMMAND)).value("key")
        for step in ("show", "give"):
            answer = await site.send(form | {"key": key, "step": step})
            assert answer.status == 400
            assert code in answer.text

    on(with_tokens(tmp_path), play)


def test_a_written_schema_is_shown_and_given(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        empty = await site.form(f"{COMMAND}?kind=replace&shard={HELD}")
        assert "Write the ALTER TABLE" in empty.text
        assert "What the agents would answer" not in empty.text
        sql = "ALTER TABLE orders_7\r\nADD COLUMN level INT"
        ask = {"kind": "replace", "shard": HELD, "argument": sql, "key": empty.value("key")}
        shown = await site.send(ask)
        assert shown.status == 200
        assert "takes out" not in shown.text
        done = await site.send(shown.giving() | ask | {"step": "give", "seen": shown.value("seen")})
        assert done.status == 303
        [said] = site.given.commands
        assert said.argument == sql.replace("\r\n", "\n")

    on(with_tokens(tmp_path), play)


def test_the_api_gives_a_command_and_shows_its_answer(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        bearer = {"Authorization": f"Bearer {IVAN}"}
        asked = await site.client.post(API, json=SKIP | {"only_ask": True}, headers=bearer)
        assert asked.status == 200
        told = await asked.json()
        assert (told["id"], told["answer"]["outcome"]) == ("", "no-op")
        assert site.given.commands == []
        answer = await site.client.post(API, json=SKIP, headers=bearer)
        assert answer.status == 202
        given = await answer.json()
        listed = await (await site.client.get(API)).json()
        newest = listed["commands"][0]
        assert (newest["id"], newest["by"], newest["shard"]) == (given["id"], "ivan", HELD)
        assert newest["answer"]["outcome"] == "no-op"
        assert (await site.client.post(API, json=SKIP, headers=bearer)).status == 409

    on(with_tokens(tmp_path), play)


def test_a_name_in_a_record_is_text_on_the_page(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        await site.send((await site.form()).giving())
        [said] = site.given.commands
        evil = replace(said, by="<script>alert(1)</script>", argument="</pre><b>")
        site.line.view.apply(evil)
        text = (await site.form(f"/target/{ORDERS}/commands")).text
        assert "<script>alert(1)" not in text
        assert "&lt;script&gt;alert(1)" in text
        assert "</pre><b>" not in text

    on(with_tokens(tmp_path), play)


def test_a_command_about_a_target_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async def play(site: Site) -> None:
        await site.sign_in()
        for path in ("/target/no.such/command", "/target/no.such/commands"):
            assert (await site.form(path)).status == 404
        assert (await site.send(SKIP, "/target/no.such/command")).status == 404
        bearer = {"Authorization": f"Bearer {OLGA}"}
        answer = await site.client.post("/api/target/no.such/commands", json=SKIP, headers=bearer)
        assert answer.status == 404

    on(with_tokens(tmp_path), play)
