"""References to passwords: which texts are some, and what Connect gets for them."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.secrets import Reference, for_connect, lies_readable, reference


@pytest.mark.parametrize(
    ("text", "found", "connect"),
    [
        ("env:SOURCE_PASSWORD", Reference("env", "SOURCE_PASSWORD"), "${env:SOURCE_PASSWORD}"),
        (
            "file:/run/secrets/s1.txt",
            Reference("file", "/run/secrets/s1.txt"),
            "${directory:/run/secrets:s1.txt}",
        ),
        ("geheim", None, "geheim"),
        ("a:b", None, "a:b"),
        ("", None, ""),
        ("${vault:db:s1}", None, "${vault:db:s1}"),
    ],
)
def test_a_reference_is_looked_up_by_the_worker(
    text: str, found: Reference | None, connect: str
) -> None:
    assert reference(text) == found
    assert for_connect(text) == connect


@pytest.mark.parametrize("text", ["env:", "env:MY PASSWORD", "file:", "file:secret", "file:/"])
def test_what_begins_like_a_reference_must_be_one(text: str) -> None:
    with pytest.raises(ConfigError, match=r"names no (file|environment variable)"):
        reference(text)


def test_only_a_value_lies_readable_in_a_configuration() -> None:
    texts = ("geheim", "env:P", "file:/p", "${vault:db:s1}", "${env:P}", "")
    assert [text for text in texts if lies_readable(text)] == ["geheim"]
