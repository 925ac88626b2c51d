"""Names of the locks that tell which sink writes."""

from __future__ import annotations

from shardmerge.connectors.access.lease_names import lease_name, standby_names

MOST = 64


def test_each_pipeline_of_a_server_has_names_of_its_own() -> None:
    pairs = [("shardmerge", "p"), ("shardmerge", "q"), ("shardmerg", "ep"), ("other", "p")]
    names = [name for of in pairs for name in (lease_name(*of), *standby_names(*of))]
    assert len(set(names)) == len(names)


def test_a_name_is_no_longer_than_a_server_takes() -> None:
    of = "d" * 64, "p" * 64
    assert max(map(len, (lease_name(*of), *standby_names(*of)))) <= MOST
