"""What `make test` leaves to `make test-all`: tests of what another test proves elsewhere.

A test is marked ``further`` if it differs from another one in a server's version, in the layout of
its topics, or in a format alone. So is a whole line's test of a rare case, if cheaper tests hold
its rules. `make test` proves each rule once, in a time that a change can wait for. `make test-all`
runs everything, which a release needs.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.whole import IS_WHOLE

further = pytest.mark.further


def with_further(first: Any, *others: Any) -> list[Any]:
    """The parameters of a test or a fixture, of which `make test` takes the first one.

    Args:
        first: A value; a list for several ones.
        others: The values of `make test-all`.
    """
    firsts = first if isinstance(first, list) else [first]
    return [*firsts, *(_marked(other) for other in others)]


def _marked(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=further)


def is_chosen(item: pytest.Item) -> bool:
    """Whether a test runs: all do that are named by themselves, or when everything runs."""
    named = any("::" in argument for argument in item.config.args)
    return IS_WHOLE or named or item.get_closest_marker("further") is None
