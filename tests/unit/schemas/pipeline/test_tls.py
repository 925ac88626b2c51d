"""Tables ``tls``: what fits together."""

from __future__ import annotations

from typing import Any

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.tls import Tls, parse_tls

WHOLE = {"mode": "verify-ca", "ca": "/ca", "certificate": "/c", "key": "/k", "key_password": "p"}


def test_a_whole_table_is_read() -> None:
    assert parse_tls(WHOLE, "tls", of_mysql=True, in_java=True) == Tls(
        mode="verify-ca", ca="/ca", certificate="/c", key="/k", key_password="p"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mode": "verify"}, "mode must be"),
        ({"mode": "required"}, "does not check the server"),
        ({"key": ""}, "absolute path"),
        ({"certificate": "c.pem"}, "absolute path"),
        ({"ca": 1}, "type str"),
        ({"truststore_password": "p"}, "truststore_password without truststore"),
        ({"key_password": "env:"}, "no environment variable"),
        ({"CA": "/x"}, "unknown key"),
    ],
)
def test_what_makes_no_sense_is_an_error(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_tls(WHOLE | change, "tls", of_mysql=True, in_java=True)


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ConfigError, match="go together"):
        parse_tls({"certificate": "/c"}, "tls", of_mysql=False, in_java=False)


def test_a_server_of_http_has_no_mode_and_one_without_java_no_stores() -> None:
    with pytest.raises(ConfigError, match="unknown key 'mode'"):
        parse_tls({"mode": "required"}, "tls", of_mysql=False, in_java=True)
    with pytest.raises(ConfigError, match="unknown key 'truststore'"):
        parse_tls({"truststore": "/t"}, "tls", of_mysql=False, in_java=False)
    with pytest.raises(ConfigError, match="must be a table"):
        parse_tls("/ca", "tls", of_mysql=False, in_java=False)
