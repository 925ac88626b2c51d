"""Records to bytes and back, and the Avro contract beside the dataclasses."""

import json
import types
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from importlib import resources
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from shardmerge.schemas.model.actions import (
    Action,
    Adoption,
    CharsetChange,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnChange,
    ColumnLiteral,
    ColumnRemoval,
    ColumnRename,
    ColumnText,
    CommentChange,
    DefaultChange,
    DefaultFill,
    IndexAddition,
    IndexRemoval,
    NullPermission,
    RowFill,
    RowRemoval,
    TableCreation,
    TypeChange,
    ValueMove,
)
from shardmerge.schemas.model.errors import ContractError, UnknownSchemaVersion
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import (
    ExistingRows,
    Keyless,
    RoutePolicies,
    RowsPolicy,
    TypePolicy,
)
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage, ShardColumn
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Default,
    DefaultKind,
    ForeignKey,
    Generated,
    Index,
    IndexKind,
    IndexPart,
    TableSchema,
)
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records import codec, plain
from shardmerge.schemas.records.codec import RECORDS, Record, decode, encode
from shardmerge.schemas.records.decisions import (
    Binding,
    Decision,
    JoinedSchema,
    Outcome,
    Release,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.plain_fields import FLAT
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.schemas.records.record_format import RecordFormat
from shardmerge.schemas.records.reloads import Reload
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.records.validations import DifferingRows, TargetValidation

SHARD = ShardId("s1", "app", "tø")
TARGET = TargetTable("merged", "t")
POSITION = SourcePosition(0, "binlog.000003", 2**40, 7)
COLUMN = Column(
    "c",
    ColumnType("enum", elements=("a", "b'c"), charset="utf8mb4"),
    nullable=False,
    default=Default(DefaultKind.LITERAL, "a"),
    comment="x",
)
SCHEMA = TableSchema(
    columns=(
        Column("id", ColumnType("bigint", unsigned=True), nullable=False, auto_increment=True),
        COLUMN,
        Column("g", ColumnType("int"), generated=Generated("`id` + 1", stored=True)),
    ),
    indexes=(
        Index("PRIMARY", IndexKind.PRIMARY, (IndexPart("id"),)),
        Index(
            "f",
            IndexKind.PLAIN,
            (IndexPart("c", length=3, descending=True), IndexPart("", "lower(`c`)")),
        ),
    ),
    checks=(Check("t_chk_1", "`id` > 0", enforced=False),),
    foreign_keys=(ForeignKey("fk", ("id",), "", "p", ("id",), "CASCADE"),),
    options=(("ENGINE", "InnoDB"),),
)
CHANGE = SchemaChange(
    ChangeId("s1", 5, 1, 2),
    TARGET,
    SHARD,
    POSITION,
    SCHEMA,
    None,
    (Lineage("a", ""),),
    ("ADD COLUMN `a` int",),
    "ALTER TABLE t ADD a INT",
    True,
    "why",
    "do",
    9,
    policies=RoutePolicies(
        origin=Origin((OriginColumn(OriginPart.SHARD, "_from"),), in_keys=True),
        on_drop=RowsPolicy.DELETE,
        existing_rows=ExistingRows.HOLD,
        keyless=Keyless.REFUSE,
        types=TypePolicy.WIDE,
    ),
)
STATEMENT = TargetStatement(
    "ALTER TABLE `m`.`t` RENAME COLUMN `c` TO `d`",
    StatementKind.CONTRACTING,
    "gone",
    ("column:c",),
    (Binding("c#1", "", writable=False),),
    SHARD,
    (ColumnRename("c", "d"),),
)
ACTIONS: tuple[Action, ...] = (
    TableCreation(SCHEMA),
    ColumnAddition(COLUMN),
    ColumnRemoval("c"),
    ColumnChange("c", COLUMN),
    ColumnRename("c", "d"),
    DefaultChange("c", None),
    DefaultChange("c", Default(DefaultKind.LITERAL, "5")),
    TypeChange("c", ColumnType("bigint")),
    NullPermission("c"),
    CommentChange("c", "why"),
    IndexAddition(SCHEMA.indexes[1]),
    IndexRemoval("PRIMARY"),
    CheckAddition(SCHEMA.checks[0]),
    CheckRemoval("t_chk_1"),
    CharsetChange("utf8mb4", ""),
    RowRemoval(((ColumnText("_s", "s1"), ColumnText("_t", "tø")), (ColumnText("_s", "s2"),))),
    RowFill((ColumnText("_s", "s1"),), (ColumnLiteral("c", "NULL"), ColumnLiteral("d", "'x'"))),
    ValueMove("c", "d", overwrites=True),
    DefaultFill("c"),
    Adoption("column:c", "`c` int", column=Column("c", ColumnType("int"))),
)
EMITTED = Decision(
    ChangeId("s1", 5), TARGET, 3, SHARD, POSITION, Outcome.EMIT, (STATEMENT,), "r", "h", "c",
    (ShardColumn("c#1", COLUMN),), ("id",), True, (Release(SHARD, 2, ("d#1",)),),
    (SHARD,), (), (SHARD,), ("w",), False, "ddl", 1, reloads=(Reload(SHARD, POSITION, 7),),
    origin=Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True),
)  # fmt: skip
RECORDED: list[Record] = [
    CHANGE,
    EMITTED,
    Decision(ChangeId("s1", 6), None, 0, None, POSITION, Outcome.IGNORED),
    OperatorCommand(
        ChangeId("p.commands", 7), TARGET, CommandKind.SET_SCHEMA, SHARD, "CREATE", SCHEMA,
        "", "me", 4,
    ),
    JoinedSchema(TARGET, 3, (ShardColumn("c#1", COLUMN),), SCHEMA, 1, 0),
    SinkProgress(
        TARGET, 3, 17,
        (StatementProgress(3, 0, "sql", StatementKind.SWITCHING, "debt", "waits"),),
        (ShardProgress(SHARD, 9, "gate", "act", POSITION, 3, 4, 2),), 5,
        FailureProgress("away", "start it", "rows/0", 7, 8),
        (Difference("column:c", DriftKind.HARMLESS, "", "`c` int", 9, 4),),
        "10.0.0.5", ("10.0.0.6",),
    ),
    TargetValidation(
        TARGET, 3, 1_000, 2_000, False, 30, 2, 1, 2, 3, 4, 5, 6, 7, ("id",),
        (DifferingRows("missing", SHARD, 1, (("7",),)), DifferingRows("extra", None, 2, ())),
        (SHARD,), ("why",), "stopped", "SM-4411", 900, 8,
    ),
]  # fmt: skip


@pytest.mark.parametrize("record", RECORDED, ids=lambda r: type(r).__name__)
def test_a_record_survives_its_bytes(record: Any) -> None:
    read = decode(encode(record))
    assert read == record
    # The same types, too: a worker takes one for the other (``codec.MAX_LATEST_BYTES``).
    assert repr(read) == repr(record)
    assert encode(record) == encode(read)


def test_a_record_that_was_encoded_just_before_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(CHANGE)
    assert decode(data) is not CHANGE
    monkeypatch.setattr(codec, "MAX_LATEST_BYTES", 4 * len(data))
    bodies = [replace(CHANGE, ddl=CHANGE.ddl[:-1] + letter) for letter in "abcde"]
    several = [encode(body) for body in bodies]
    known = [decode(d) is b for d, b in zip(several, bodies, strict=True)]
    assert known == [False, False, True, True, True]
    assert [decode(d) for d in several] == bodies


@pytest.mark.parametrize("action", ACTIONS, ids=lambda a: type(a).__name__)
def test_every_action_of_a_statement_survives_bytes_and_json(action: Action) -> None:
    decision = replace(EMITTED, statements=(replace(STATEMENT, actions=(action, *ACTIONS)),))
    assert decode(encode(decision)) == decision
    assert plain.load(Decision, plain.dump(decision)) == decision
    for name in ("avro", "json"):
        form = RecordFormat(name)
        assert form.read(form.write(decision)) == decision


def test_the_actions_are_the_whole_set() -> None:
    assert {type(action) for action in ACTIONS} == set(get_args(Action))


def test_an_action_of_an_unknown_class_is_refused() -> None:
    kept = plain.to_plain(STATEMENT)
    assert kept["actions"] == [{"ColumnRename": {"name": "c", "to": "d"}}]
    with pytest.raises(ContractError, match="Dance"):
        plain.from_plain(TargetStatement, {**kept, "actions": [{"Dance": {"name": "c"}}]})


@pytest.mark.parametrize("record", RECORDED, ids=lambda r: type(r).__name__)
def test_a_value_survives_canonical_json(record: Any) -> None:
    assert plain.load(type(record), plain.dump(record)) == record


def test_foreign_bytes_are_a_contract_error() -> None:
    with pytest.raises(ContractError, match="not an Avro single-object record"):
        decode(b'{"a": 1}')
    with pytest.raises(ContractError, match="nothing"):
        decode(b"")


def test_an_unknown_fingerprint_is_named() -> None:
    with pytest.raises(UnknownSchemaVersion, match="0102030405060708"):
        decode(b"\xc3\x01" + bytes(range(1, 9)) + b"rest")


def test_a_cut_record_is_a_contract_error() -> None:
    with pytest.raises(ContractError):
        decode(encode(CHANGE)[:-30])


def test_plain_data_of_another_shape_is_refused() -> None:
    with pytest.raises(ContractError, match="no field 'x'"):
        plain.from_plain(ChangeId, {"source": "s", "offset": 1, "x": 1})
    with pytest.raises(ContractError, match="expected int"):
        plain.from_plain(ChangeId, {"source": "s", "offset": "1"})
    with pytest.raises(ContractError, match="not a ChangeId"):
        plain.load(ChangeId, b"{")


def test_plain_data_without_a_later_field_takes_the_default() -> None:
    assert plain.from_plain(ChangeId, {"source": "s", "offset": 1}) == ChangeId("s", 1, 0, 1)


def test_the_policies_of_a_route_stand_beside_the_other_fields_of_a_change() -> None:
    written = plain.to_plain(CHANGE)
    assert (written["mode"], written["keyless"]) == ("optimistic", "refuse")
    assert "policies" not in written


def test_a_change_from_before_a_policy_existed_has_what_counted_then() -> None:
    written = plain.to_plain(CHANGE)
    del written["types"], written["on_drop"]
    read = plain.from_plain(SchemaChange, written)
    expected = replace(CHANGE.policies, types=TypePolicy.PUBLISHED, on_drop=RowsPolicy.KEEP)
    assert read == replace(CHANGE, policies=expected)


@pytest.mark.parametrize(("name", "record"), RECORDS.items())
def test_the_avro_contract_has_the_fields_of_the_dataclass(name: str, record: type) -> None:
    text = (
        resources.files("shardmerge.schemas.records").joinpath("avro", f"{name}.avsc").read_text()
    )
    declared = _without_docs(json.loads(text))
    declared.pop("namespace")

    assert declared == _expected(record, set())


def _without_docs(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _without_docs(v) for k, v in schema.items() if k != "doc"}
    if isinstance(schema, list):
        return [_without_docs(item) for item in schema]
    return schema


def _expected(kind: Any, seen: set[str]) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        null = ["null"] if type(None) in get_args(kind) else []
        return null + [_expected(a, seen) for a in get_args(kind) if a is not type(None)]
    if origin is tuple:
        return {"type": "array", "items": _expected(get_args(kind)[0], seen)}
    if is_dataclass(kind):
        assert isinstance(kind, type)
        if kind.__name__ in seen:
            return kind.__name__
        seen.add(kind.__name__)
        return {"type": "record", "name": kind.__name__, "fields": _fields(kind, seen)}
    if issubclass(kind, Enum) or kind is str:
        return "string"
    return {bool: "boolean", int: "long"}[kind]


def _fields(kind: Any, seen: set[str]) -> list[Any]:
    hints = get_type_hints(kind)
    found: list[Any] = []
    for field in fields(kind):
        if field.metadata == FLAT:
            found += _fields(hints[field.name], seen)
        else:
            found.append({"name": field.name, "type": _expected(hints[field.name], seen)})
    return found


@pytest.mark.parametrize("name", RECORDS)
def test_the_contract_describes_every_record_and_field_in_sentences(name: str) -> None:
    def described(kind: Any, place: str) -> list[tuple[str, str]]:
        if isinstance(kind, list):
            return [each for member in kind for each in described(member, place)]
        if not isinstance(kind, dict):
            return []
        inner = [(kind["name"], kind.get("doc", ""))] if kind["type"] == "record" else []
        for field in kind.get("fields", ()):
            at = f"{kind['name']}.{field['name']}"
            inner += [(at, field.get("doc", "")), *described(field["type"], at)]
        return inner + described(kind.get("items"), place)

    text = (
        resources.files("shardmerge.schemas.records").joinpath("avro", f"{name}.avsc").read_text()
    )
    found = described(json.loads(text), name)
    assert len(found) > 10
    assert [at for at, doc in found if not doc.endswith(".")] == []
    assert [at for at, doc in found if "None" in doc] == [], "consumers write null"
