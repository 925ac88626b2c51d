from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.pipeline.web import Web, parse_web
from tests.access_pages import behind_proxy, with_tokens
from tests.example_pages import pipeline

TOKENS = {"commands": "token", "tokens": {"olga": "env:OLGA_TOKEN"}}
PROXY = {"commands": "proxy", "proxies": ["10.0.0.5"], "origin": "https://p.example"}


def test_without_the_table_nobody_may_command():
    assert pipeline().web == Web()
    assert Web().commands == "off"


def test_a_written_out_pipeline_has_the_table(tmp_path):
    for of in (pipeline(), with_tokens(tmp_path), behind_proxy("https://p.example", groups="dba")):
        assert parse_pipeline(pipeline_text(of), {}) == of


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ([], "must be a table"),
        ({"wobble": 1}, "unknown key 'wobble'"),
        ({"commands": "on"}, "commands must be off, token or proxy"),
        ({"commands": True}, "commands must be of type str"),
        ({"origin": "pages.example.com"}, "origin must be"),
        ({"origin": "https://p.example/"}, "origin must be"),
        ({"origin": "https://u@p.example"}, "origin must be"),
        ({"tokens": {"olga": "env:X"}}, "only commands = 'token' has tokens"),
        ({"commands": "token"}, "needs tokens"),
        (TOKENS | {"tokens": {"olga": 1}}, "must be a table of texts"),
        (TOKENS | {"tokens": {"": "env:X"}}, "no name of a user"),
        (TOKENS | {"tokens": {"o\nlga": "env:X"}}, "no name of a user"),
        (TOKENS | {"tokens": {"olga": "the-secret-itself-0123456789"}}, "must be env:NAME or file"),
        (TOKENS | {"tokens": {"olga": "env:"}}, "names no environment variable"),
        (TOKENS | {"proxies": ["10.0.0.5"]}, "only commands = 'proxy' has proxies"),
        ({"groups": ["dba"]}, "only commands = 'proxy' has groups"),
        (PROXY | {"proxies": []}, "needs proxies"),
        (PROXY | {"proxies": "10.0.0.5"}, "must be a list of texts"),
        (PROXY | {"proxies": ["10.0.0.5/8"]}, "no address and no network"),
        (PROXY | {"proxies": ["proxy.example"]}, "no address and no network"),
        (PROXY | {"origin": ""}, "needs origin"),
        (PROXY | {"user_header": ""}, "no name of a header"),
        (PROXY | {"user_header": "X User"}, "no name of a header"),
        (PROXY | {"sign_out": "oauth2/sign_out"}, "sign_out must be a path"),
        (PROXY | {"sign_out": "//evil.example"}, "sign_out must be a path"),
        (PROXY | {"sign_out": "https://p.example/out"}, "sign_out must be a path"),
        (TOKENS | {"sign_out": "/out"}, "only commands = 'proxy' has sign_out"),
        (PROXY | {"groups": ["dba"]}, "groups and groups_header go together"),
        (PROXY | {"groups_header": "X-Groups"}, "groups and groups_header go together"),
    ],
)
def test_a_table_that_cannot_be_used_is_told(entry, what):
    with pytest.raises(ConfigError) as told:
        parse_web(entry)
    assert what in str(told.value)
    assert "the-secret-itself" not in str(told.value)
