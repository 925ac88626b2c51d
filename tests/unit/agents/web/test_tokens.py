from __future__ import annotations

from pathlib import Path

import pytest

from shardmerge.agents.web.tokens import check_web, tokens_of
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.web import Web
from tests.access_pages import IVAN, OLGA, behind_proxy, with_tokens


def test_a_token_is_looked_up_each_time(tmp_path: Path):
    web = with_tokens(tmp_path).web
    assert tokens_of(web) == {"olga": OLGA, "ivan": IVAN}
    (tmp_path / "olga").write_text("another-token-0123456789")
    assert tokens_of(web)["olga"] == "another-token-0123456789"


@pytest.mark.parametrize(
    ("text", "what"),
    [("short", "fewer than 20"), (IVAN, "also that of another"), (None, "cannot be read")],
)
def test_a_token_that_cannot_be_used_is_told_without_it(tmp_path: Path, text, what):
    web = with_tokens(tmp_path).web
    (tmp_path / "olga").unlink()
    if text is not None:
        (tmp_path / "olga").write_text(text)
    with pytest.raises(ConfigError, match=what) as told:
        tokens_of(web)
    assert str(text) not in str(told.value) or text is None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_the_loopback_tokens_need_no_origin(tmp_path: Path, host: str):
    check_web(with_tokens(tmp_path).web, host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "worker", ""])
def test_elsewhere_they_do(tmp_path: Path, host: str):
    with pytest.raises(ConfigError, match="needs origin"):
        check_web(with_tokens(tmp_path).web, host)
    check_web(with_tokens(tmp_path, origin="https://p.example").web, host)
    check_web(behind_proxy("https://p.example").web, host)
    check_web(Web(), host)
