"""Our schema history in Java and the repair's rule in Python apply the same statements."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.schema_history.history import HistoryRecord, true_order_applies

from .java_mains import JavaMain

A = "84ffc6e9-e7f5-11f1-b328-02fc00000001"
B = "a12b3f1c-e7f7-11f1-b0cd-02fc00000001"
MARK = ":9223372036854775806-1"
PLACES = (("b.000002", 800), ("b.000002", 900), ("b.000010", 900))
GTIDS = (
    None,
    "",
    f"{A}:1-6",
    f"{A}:1-7",
    f"{A}:1-4:6",
    f"{A}:1-6:tag:1-2",
    f"{A}:1-6{MARK}",
    f"{A}:1-7{MARK}",
    f"{A}:1-3:5-6",
    f"{A}:1-6,{B}:1-3",
    f"{A}:1-6,{B}:1-3{MARK}",
    A + MARK,
    "0-1-6",
    "0-2-7",
)
POSITIONS = [
    {"file": file, "pos": pos, **({} if gtids is None else {"gtids": gtids})}
    for (file, pos), gtids in itertools.product(PLACES, GTIDS)
]


def test_java_and_python_tell_alike_what_is_before_an_offset(tmp_path: Path) -> None:
    pairs = list(itertools.product(POSITIONS, POSITIONS))
    lines = [json.dumps(position) for pair in pairs for position in pair]

    told = JavaMain("HistoryOrder", tmp_path).told(lines)

    assert len(told) == len(pairs) and {"true", "false"} == set(told)
    differ = [pair for pair, word in zip(pairs, told, strict=True) if in_python(*pair) != word]
    assert differ == []


def in_python(recorded: dict[str, Any], desired: dict[str, Any]) -> str:
    record = HistoryRecord(SourceOffset(recorded), snapshot=False, text="x", changes=())
    return str(true_order_applies(record, SourceOffset(desired))).lower()
