"""The pipeline file: sources, routing rules, target and Kafka, as one frozen value.

The format is TOML; ``docker/pipeline.toml`` is an example. Unknown keys are errors. ``${NAME}``
inside a string is replaced by an environment variable when the file is read. Instead of a
password, the file can have a reference to it, see ``secrets``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, TypeVar

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.mysql_facts import MAX_NAME_CHARACTERS
from shardmerge.schemas.model.origin import OriginPart
from shardmerge.schemas.model.policies import Mode

from .connector_properties import KEY, connector_properties
from .first_rows import check_first_rows, with_first_rows
from .kafka_client import parse_client, texts
from .lineage.open_lineage import OpenLineage
from .routes import check_keys, check_routes, one_of, routing_rule
from .secrets import reference
from .settings import (
    CCOMPAT,
    ICEBERG_VERSION,
    RECORD_FORMATS,
    ROW_FORMATS,
    Connect,
    Kafka,
    Pipeline,
    Sink,
    Source,
    Target,
)
from .spark_catalog import parse_catalog
from .tls import parse_tls
from .web import parse_web

T = TypeVar("T")
TARGETS = {
    "mysql": ((5, 7), 9),
    "mariadb": ((10, 2), 12),
    "tidb": ((6,), 9),
    "iceberg": ((1, 9), 1),
}
"""Kind of target → the oldest version and the newest major version whose DDL is known."""
MAX_SHARED_SOURCE = 128
"""Most characters of a source's name if a route has a ``row_topic``: there it is part of a key."""


def parse_pipeline(text: str, env: Mapping[str, str]) -> Pipeline:
    """Read a pipeline file.

    Args:
        text: TOML.
        env: Values for ``${NAME}``.

    Raises:
        ConfigError: Not TOML; a key is unknown, missing or of the wrong type; an environment
            variable is missing; two sources share a name or a server id.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"pipeline file: {error}", code="SM-5001") from None
    document = _substitute(document, env, "pipeline file")
    known = {"pipeline", *(f.name for f in fields(Pipeline))} - {"name"}
    if unknown := sorted(set(document) - known):
        raise ConfigError(
            f"pipeline file: unknown table {unknown[0]!r}",
            hint=f"known: {', '.join(sorted(known))}",
            code="SM-5002",
        )
    head = _table(document, "pipeline")
    check_keys(head, ("mode", "name"), "[pipeline]")
    mode = one_of(Mode, "mode", head.get("mode", Mode.OPTIMISTIC), "[pipeline]")
    target = _target(_table(document, "target"))
    routes = tuple(
        routing_rule(entry, f"[[routes]] {i + 1}", mode)
        for i, entry in enumerate(_list(document, "routes"))
    )
    pipeline = Pipeline(
        name=_name(head.get("name"), "[pipeline] name"),
        kafka=_kafka(_build(Kafka, _kafka_clients(_table(document, "kafka")), "[kafka]")),
        connect=_connect(_table(document, "connect")),
        target=target,
        sink=_build(Sink, document.get("sink", {}), "[sink]"),
        web=parse_web(document.get("web", {})),
        lineage=_build(OpenLineage, document.get("lineage", {}), "[lineage]"),
        sources=tuple(
            _source(with_first_rows(entry, routes, target.kind), f"[[sources]] {i + 1}")
            for i, entry in enumerate(_list(document, "sources"))
        ),
        routes=routes,
    )
    _validate(pipeline)
    return pipeline


def _validate(pipeline: Pipeline) -> None:
    for what, values in (
        ("name", [s.name for s in pipeline.sources]),
        ("server_id", [s.server_id for s in pipeline.sources]),
    ):
        if len(set(values)) != len(values):
            raise ConfigError(f"[[sources]]: two sources have the same {what}", code="SM-5102")
    check_routes(pipeline.routes)
    for name in sorted({rule.row_topic for rule in pipeline.routes if rule.row_topic}):
        _row_topic(pipeline, name)
    for source in pipeline.sources:
        _name(source.name, "[[sources]] name")
        if len(source.name) > MAX_NAME_CHARACTERS and any(
            column.part in (OriginPart.SOURCE, OriginPart.SHARD, OriginPart.POSITION)
            for rule in pipeline.routes
            for column in rule.policies.origin.columns
        ):
            raise ConfigError(
                f"source {source.name}: an origin column cannot hold the name, it is longer than "
                f"{MAX_NAME_CHARACTERS} characters",
                code="SM-5104",
            )
        if source.flavour not in ("mysql", "mariadb"):
            raise ConfigError(
                f"source {source.name}: flavour {source.flavour!r} is not mysql or mariadb",
                code="SM-5005",
            )
        check_first_rows(source, pipeline)


def _source(entry: Mapping[str, Any], where: str) -> Source:
    return _build(Source, _with_tls(_read_connector(entry, where), where), where)


def _row_topic(pipeline: Pipeline, name: str) -> None:
    """Raise ``ConfigError`` when the shared topic could have the name of another topic."""
    for owner in (pipeline.name, *(source.name for source in pipeline.sources)):
        if name == owner or name.startswith(f"{owner}."):
            raise ConfigError(
                f"[[routes]]: row_topic {name!r} is a name that topics of {owner!r} have",
                hint="choose one that begins otherwise, such as the target's, if that does",
                code="SM-5303",
            )
    for source in pipeline.sources:
        if len(source.name) > MAX_SHARED_SOURCE:
            raise ConfigError(
                f"source {source.name}: with a row_topic its name must not be longer than "
                f"{MAX_SHARED_SOURCE} characters",
                code="SM-5104",
            )


def _with_tls(
    entry: Mapping[str, Any], where: str, *, of_mysql: bool = True, in_java: bool = True
) -> Mapping[str, Any]:
    """The entry with its table ``tls`` read."""
    reference(str(entry.get("password", "")))
    if "tls" not in entry:
        return entry
    tls = parse_tls(entry["tls"], f"{where}: tls", of_mysql=of_mysql, in_java=in_java)
    return {**entry, "tls": tls}


def _kafka_clients(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    found = dict(entry)
    if "client" in entry:
        found["client"] = parse_client(entry["client"])
    if "schema_registry_tls" in entry:
        if not str(entry.get("schema_registry", "")).startswith("https:"):
            raise ConfigError(
                "[kafka]: schema_registry_tls needs an address with https://", code="SM-5704"
            )
        where = "[kafka]: schema_registry_tls"
        tls = parse_tls(entry["schema_registry_tls"], where, of_mysql=False, in_java=True)
        found["schema_registry_tls"] = tls
    return found


def _connect(entry: Mapping[str, Any]) -> Connect:
    found = dict(
        _with_tls(_read_connector(entry, "[connect]"), "[connect]", of_mysql=False, in_java=False)
    )
    if "client" in entry:
        found["client"] = tuple(sorted(texts(entry["client"], "[connect.client]").items()))
    connect = _build(Connect, found, "[connect]")
    if not all(connect.urls):
        raise ConfigError(
            f"[connect]: an address in url {connect.url!r} is empty",
            hint='write such as "http://connect-1:8083,http://connect-2:8083"',
            code="SM-5704",
        )
    if "tls" in entry and not all(url.startswith("https:") for url in connect.urls):
        raise ConfigError("[connect]: tls needs a url with https://", code="SM-5704")
    if bool(connect.user) != bool(connect.password):
        raise ConfigError("[connect]: user and password go together", code="SM-5704")
    if ":" in connect.user:
        # RFC 7617: the password begins after the first colon.
        raise ConfigError(f"[connect]: user {connect.user!r} has a colon", code="SM-5704")
    if any(re.match(r"\w+://[^/]*@", url) for url in connect.urls):
        raise ConfigError(
            "[connect]: url has a user in it",
            hint="write it as user and password of [connect]",
            code="SM-5704",
        )
    return connect


def _kafka(kafka: Kafka) -> Kafka:
    if kafka.row_format not in ROW_FORMATS:
        raise ConfigError(
            f"[kafka]: row_format {kafka.row_format!r} is not known",
            hint=f"known: {', '.join(ROW_FORMATS)}",
            code="SM-5005",
        )
    if kafka.record_format not in RECORD_FORMATS:
        raise ConfigError(
            f"[kafka]: record_format {kafka.record_format!r} is not known",
            hint=f"known: {', '.join(RECORD_FORMATS)}",
            code="SM-5005",
        )
    needing = ["row_format 'avro'"] if kafka.row_format == "avro" else []
    needing += ["record_format 'avro-registry'"] if kafka.record_format == "avro-registry" else []
    if needing and not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", kafka.schema_registry):
        raise ConfigError(
            f"[kafka]: {needing[0]} needs schema_registry, an address that begins with "
            f"http:// or https:// and holds no user, not {kafka.schema_registry!r}",
            hint="http://HOST:8081, or Apicurio's http://HOST:8080/apis/ccompat/v7",
            code="SM-5202",
        )
    if kafka.schema_registry and not needing:
        raise ConfigError(
            f"[kafka]: row_format {kafka.row_format!r} and record_format {kafka.record_format!r} "
            "have no schema_registry",
            code="SM-5202",
        )
    if kafka.row_format == "avro":
        by_address = "apicurio" if CCOMPAT in kafka.schema_registry else "confluent"
        kafka = replace(kafka, avro_converter=kafka.avro_converter or by_address)
        if kafka.avro_converter not in ("apicurio", "confluent"):
            raise ConfigError(
                f"[kafka]: avro_converter {kafka.avro_converter!r} is not known", code="SM-5005"
            )
        if kafka.avro_converter == "apicurio" and CCOMPAT not in kafka.schema_registry:
            raise ConfigError(
                f"[kafka]: avro_converter 'apicurio' needs a schema_registry with {CCOMPAT} in it",
                code="SM-5202",
            )
    elif kafka.avro_converter:
        raise ConfigError(
            f"[kafka]: row_format {kafka.row_format!r} has no avro_converter", code="SM-5202"
        )
    if bool(kafka.schema_registry_user) != bool(kafka.schema_registry_password):
        raise ConfigError(
            "[kafka]: schema_registry_user and schema_registry_password go together", code="SM-5202"
        )
    if ":" in kafka.schema_registry_user:
        # RFC 7617: the password begins after the first colon.
        raise ConfigError(
            f"[kafka]: schema_registry_user {kafka.schema_registry_user!r} has a colon",
            code="SM-5202",
        )
    if kafka.schema_registry_user and not kafka.schema_registry:
        raise ConfigError("[kafka]: schema_registry_user without schema_registry", code="SM-5202")
    return kafka


def _target(entry: Mapping[str, Any]) -> Target:
    if entry.get("kind") == "iceberg":
        target = _iceberg(entry)
    elif "catalog" in entry:
        raise ConfigError("[target]: only kind 'iceberg' has a catalog", code="SM-5402")
    else:
        target = _build(Target, _with_tls(entry, "[target]", in_java=False), "[target]")
    if target.kind not in TARGETS:
        raise ConfigError(
            f"[target]: kind {target.kind!r} is not known",
            hint=f"known: {', '.join(TARGETS)}",
            code="SM-5005",
        )
    oldest, newest = TARGETS[target.kind]
    if target.kind not in ("mysql", "iceberg") and "version" not in entry:
        raise ConfigError(
            f"[target]: key 'version' is missing, kind {target.kind!r} has no default",
            hint="the numbers that SELECT VERSION() begins with",
            code="SM-5003",
        )
    if not re.fullmatch(r"\d{1,2}(\.\d{1,2}){0,2}", target.version):
        raise ConfigError(
            f"[target]: version must be one to three numbers with dots, not {target.version!r}",
            hint="the numbers that SELECT VERSION() begins with",
            code="SM-5004",
        )
    numbers = tuple(int(number) for number in target.version.split("."))
    if not oldest <= numbers < (newest + 1,):
        raise ConfigError(
            f"[target]: version {target.version} of {target.kind} is not supported",
            hint=f"from {'.'.join(map(str, oldest))} to {newest}.x",
            code="SM-5401",
        )
    return target


def _iceberg(entry: Mapping[str, Any]) -> Target:
    if unneeded := sorted({"host", "port", "user", "password", "tls"} & set(entry)):
        raise ConfigError(
            f"[target]: kind 'iceberg' has no {unneeded[0]}",
            hint="it has a [target.catalog]",
            code="SM-5402",
        )
    given = {key: value for key, value in entry.items() if key != "catalog"}
    nowhere = {"host": "", "port": 0, "user": "", "password": "", "version": ICEBERG_VERSION}
    target = _build(Target, nowhere | given, "[target]")
    return replace(target, catalog=parse_catalog(entry.get("catalog")))


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        raise ConfigError(
            f"{where} must be letters, digits, '_' or '-', not {value!r}", code="SM-5004"
        )
    return value


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if name not in document:
        raise ConfigError(f"pipeline file: table [{name}] is missing", code="SM-5003")
    if not isinstance(document[name], dict):
        raise ConfigError(f"pipeline file: {name!r} must be a table", code="SM-5004")
    return document[name]  # type: ignore[no-any-return]


def _list(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    entries = document.get(name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        entries = []
    if not entries:
        raise ConfigError(f"pipeline file: at least one [[{name}]] is needed", code="SM-5003")
    return entries


def _read_connector(entry: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The table with its properties for connectors read."""
    if KEY not in entry:
        return entry
    return {**entry, KEY: connector_properties(entry[KEY], f"{where} {KEY}")}


def _build(cls: type[T], entry: Mapping[str, Any], where: str) -> T:
    specs = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    check_keys(entry, sorted(specs), where)
    for name, spec in specs.items():
        if name not in entry:
            if spec.default is MISSING and spec.default_factory is MISSING:
                raise ConfigError(f"{where}: key {name!r} is missing", code="SM-5003")
            continue
        # What was read already is no value of TOML.
        if type(entry[name]).__name__ != {"Properties": "tuple"}.get(str(spec.type), spec.type):
            raise ConfigError(
                f"{where}: {name} must be of type {spec.type}, not {entry[name]!r}", code="SM-5004"
            )
    return cls(**entry)


def _substitute(value: Any, env: Mapping[str, str], where: str) -> Any:
    if isinstance(value, dict):
        return {k: _substitute(v, env, f"{where}: {k}") for k, v in value.items()}
    if isinstance(value, list):
        return [_substitute(v, env, where) for v in value]
    if isinstance(value, str):

        def variable(match: re.Match[str]) -> str:
            if match.group(1) not in env:
                raise ConfigError(
                    f"{where}: environment variable {match.group(1)} is not set", code="SM-5006"
                )
            return env[match.group(1)]

        return re.sub(r"\$\{(\w+)\}", variable, value)
    return value
