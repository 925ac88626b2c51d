"""The pipeline file: read whole, or refused with the place of the fault."""

import re

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import (
    ExistingRows,
    Keyless,
    Mode,
    RenamePolicy,
    RowOperation,
    RowsPolicy,
)
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import route
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.pipeline.tls import Tls

GOOD = """
[pipeline]
name = "demo"
[kafka]
bootstrap_servers = "127.0.0.1:9092"
[connect]
url = "http://127.0.0.1:8083"
[target]
host = "127.0.0.1"
port = 3306
user = "u"
password = "${TARGET_PASSWORD}"
[[sources]]
name = "s1"
host = "127.0.0.1"
port = 3307
user = "u"
password = "p"
server_id = 1
[[routes]]
database = "app"
table = "t_.*"
target = "merged.t"
"""
ENV = {"TARGET_PASSWORD": "secret"}


def test_a_pipeline_file_is_read_with_defaults_and_environment() -> None:
    pipeline = parse_pipeline(GOOD, ENV)

    assert pipeline.target.password == "secret"
    assert [rule.policies.mode for rule in pipeline.routes] == [Mode.OPTIMISTIC]
    assert pipeline.source("s1").databases == ".*"
    assert route(pipeline.routes, ShardId("s1", "app", "t_1")) == (TargetTable("merged", "t"),)


def test_a_route_has_the_mode_of_the_pipeline_or_its_own() -> None:
    head = GOOD.replace('name = "demo"', 'name = "demo"\nmode = "pessimistic"')
    more = '[[routes]]\ndatabase = "o"\ntable = "t"\ntarget = "m.o"\nmode = "optimistic"\n'

    modes = [rule.policies.mode for rule in parse_pipeline(head + more, ENV).routes]

    assert modes == [Mode.PESSIMISTIC, Mode.OPTIMISTIC]


def test_a_route_says_what_becomes_of_tables_without_a_primary_key() -> None:
    assert parse_pipeline(GOOD, ENV).routes[0].policies.keyless is Keyless.COUNT
    (rule,) = parse_pipeline(GOOD + "keyless = 'refuse'\n", ENV).routes
    assert rule.policies.keyless is Keyless.REFUSE
    with pytest.raises(ConfigError, match="keyless 'append' is not known") as raised:
        parse_pipeline(GOOD + "keyless = 'append'\n", ENV)
    assert raised.value.hint == "known: count, refuse"


def test_a_route_says_what_becomes_of_renames() -> None:
    assert parse_pipeline(GOOD, ENV).routes[0].policies.renames is RenamePolicy.MAP
    for policy in RenamePolicy:
        text = GOOD.replace('target = "merged.t"', f'target = "merged.t"\nrenames = "{policy}"')
        assert parse_pipeline(text, ENV).routes[0].policies.renames is policy


def test_a_target_moves_in_one_mode() -> None:
    more = '[[routes]]\ndatabase = "o"\ntable = "t"\ntarget = "merged.t"\nmode = "pessimistic"\n'
    with pytest.raises(ConfigError, match=r"merged\.t has two modes"):
        parse_pipeline(GOOD + more, ENV)
    names = "table = '(?P<g>t)_.*'\ntarget = 'merged.\\g<g>'"
    one = GOOD.replace('table = "t_.*"\ntarget = "merged.t"', names)
    two = more.replace('table = "t"\ntarget = "merged.t"', names)
    assert len(parse_pipeline(one + two, ENV).routes) == 2


def test_the_target_is_the_mysql_of_the_tests_unless_the_file_says_otherwise() -> None:
    assert parse_pipeline(GOOD, ENV).target.kind == "mysql"
    assert parse_pipeline(GOOD, ENV).target.version == "8.0.15"


@pytest.mark.parametrize(
    ("kind", "version"),
    [("mysql", "5.7"), ("mysql", "9.7.4"), ("mariadb", "10.11"), ("mariadb", "11.8.9"),
     ("tidb", "7.5.1")],
)  # fmt: skip
def test_kind_and_version_of_the_target_are_settings(kind: str, version: str) -> None:
    said = f'port = 3306\nkind = "{kind}"\nversion = "{version}"'
    target = parse_pipeline(GOOD.replace("port = 3306", said), ENV).target

    assert (target.kind, target.version) == (kind, version)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "demo"', 'name = "de mo"', "letters"),
        ('name = "demo"', 'name = "demo"\nmod = "x"', "unknown key 'mod'"),
        ('name = "demo"', 'name = "demo"\nmode = "wild"', "mode 'wild' is not known"),
        ("[kafka]", "[kafkas]", "unknown table 'kafkas'"),
        ('bootstrap_servers = "127.0.0.1:9092"', "", "'bootstrap_servers' is missing"),
        ("port = 3306", 'port = "3306"', "port must be of type int"),
        ("port = 3306", "port = true", "port must be of type int"),
        ("port = 3306", "port = 3306\nprot = 1", "unknown key 'prot'"),
        ("port = 3306", 'port = 3306\nkind = "oracle"', "kind 'oracle' is not known"),
        ("port = 3306", 'port = 3306\nkind = "mariadb"', "'version' is missing"),
        ("port = 3306", 'port = 3306\nversion = "8.0.15-log"', "numbers with dots"),
        ("port = 3306", 'port = 3306\nversion = "5.6.51"', "5.6.51 of mysql is not supported"),
        ("port = 3306", 'port = 3306\nkind = "mariadb"\nversion = "13.1"', "not supported"),
        ('target = "merged.t"', 'target = "t"', "database.table"),
        ('database = "app"', "", "database is missing"),
        ('database = "app"', 'database = "("', "regular expression"),
        ("${TARGET_PASSWORD}", "${NOPE}", "NOPE is not set"),
        ("[[sources]]", "[sources]", "at least one"),
        ("server_id = 1", 'server_id = 1\nflavour = "oracle"', "flavour"),
        ("[kafka]", "[kafka", "pipeline file"),
    ],
)
def test_a_fault_is_named(old: str, new: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_pipeline(GOOD.replace(old, new), ENV)


def test_two_sources_may_share_neither_name_nor_server_id() -> None:
    source = GOOD[GOOD.index("[[sources]]") : GOOD.index("[[routes]]")]

    with pytest.raises(ConfigError, match="same name"):
        parse_pipeline(GOOD + source.replace("= 1", "= 2"), ENV)
    with pytest.raises(ConfigError, match="same server_id"):
        parse_pipeline(GOOD + source.replace('"s1"', '"s2"'), ENV)


def test_an_unknown_source_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no source 's9'"):
        parse_pipeline(GOOD, ENV).source("s9")


ICEBERG = re.sub(
    r"\[target\][^[]*",
    '[target]\nkind = "iceberg"\n[target.catalog]\ntype = "hadoop"\nwarehouse = "/w"\n',
    GOOD,
)


def test_an_iceberg_target_is_a_catalog() -> None:
    target = parse_pipeline(ICEBERG, {}).target

    assert (target.kind, target.version, target.control_database) == (
        "iceberg", "1.12.0", "shardmerge",
    )  # fmt: skip
    catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", "/w")))
    assert target.catalog == catalog


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('kind = "iceberg"', 'kind = "iceberg"\nhost = "h"', "has no host"),
        ('kind = "iceberg"', 'kind = "iceberg"\nversion = "0.14"', "not supported"),
        ('type = "hadoop"', "", "'type' is missing"),
        ('warehouse = "/w"', "", "'warehouse' is missing"),
        ('warehouse = "/w"', 'warehouse = "/w"\nname = "a.b"', "name must be letters"),
        ('warehouse = "/w"', 'warehouse = "/w"\ns3.endpoint = "x"', "s3 must be a text"),
        ("[target.catalog]", "[target.catalogue]", "unknown key 'catalogue'"),
    ],
)
def test_a_wrong_iceberg_target_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_pipeline(ICEBERG.replace(old, new), {})


def test_only_iceberg_has_a_catalog() -> None:
    text = GOOD.replace("[[sources]]", '[target.catalog]\ntype = "hive"\n[[sources]]', 1)
    with pytest.raises(ConfigError, match="only kind 'iceberg'"):
        parse_pipeline(text, ENV)


def test_a_route_gives_its_target_origin_columns() -> None:
    entry = "origin = { shard = '_from', source = '_s', in_keys = true }\non_drop = 'delete'\n"
    entry += "existing_rows = 'accept'\n"
    (rule,) = parse_pipeline(GOOD + entry, ENV).routes

    columns = (OriginColumn(OriginPart.SHARD, "_from"), OriginColumn(OriginPart.SOURCE, "_s"))
    assert rule.policies.origin == Origin(columns, in_keys=True)
    assert (rule.policies.on_drop, rule.on_truncate) == (RowsPolicy.DELETE, RowsPolicy.DELETE)
    assert rule.policies.existing_rows is ExistingRows.ACCEPT


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("origin = 'x'", "routes.* 1 origin must be a table"),
        ("origin = { host = 'h' }", "unknown key 'host'"),
        ("origin = { shard = '' }", "shard must name a column"),
        ("origin = { shard = 5 }", "shard must be of type str"),
        ("origin = { shard = 'a', table = 'A' }", "two columns have the same name"),
        ("origin = { in_keys = true }", "in_keys without a column that names the shard"),
        (
            "origin = { position = 'p', in_keys = true }",
            "in_keys without a column that names the shard",
        ),
        ("origin = { position = 'p' }\nkeyless = 'refuse'", "position is the key of"),
        ("origin = { shard = 'a', in_keys = 1 }", "in_keys must be true or false"),
        ("on_drop = 'delete'", "needs origin columns"),
        ("origin = { source = 'a', table = 'b' }\non_drop = 'delete'", "needs origin columns"),
        ("existing_rows = 'no'", "existing_rows 'no' is not known"),
        ("on_truncate = 'hold'", "on_truncate 'hold' is not known"),
        (
            "origin = { shard = 'a' }\n[[routes]]\ndatabase = 'o'\ntable = 't'\n"
            "target = 'merged.t'",
            "two origins: a .shard.; none",
        ),
    ],
)
def test_origin_columns_that_cannot_be_are_refused(entry: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_pipeline(GOOD + entry, ENV)


def test_the_name_of_a_source_fits_its_origin_column() -> None:
    name = "s" * 65
    long = GOOD.replace('name = "s1"', f'name = "{name}"')
    assert parse_pipeline(long + "origin = { table = 'a' }", ENV).sources[0].name == name
    with pytest.raises(ConfigError, match="longer than 64 characters"):
        parse_pipeline(long + "origin = { shard = 'a' }", ENV)


AVRO = 'row_format = "avro"\nschema_registry = "http://registry:8081"\n'


def with_kafka(text: str) -> str:
    return GOOD.replace("[kafka]\n", "[kafka]\n" + text)


def test_rows_are_in_json_unless_the_file_says_otherwise() -> None:
    assert parse_pipeline(GOOD, ENV).kafka.row_format == "json"
    user = 'schema_registry_user = "u"\nschema_registry_password = "${TARGET_PASSWORD}"\n'
    kafka = parse_pipeline(with_kafka(AVRO + user), ENV).kafka
    assert (kafka.row_format, kafka.schema_registry) == ("avro", "http://registry:8081")
    assert kafka.schema_registry_password == "secret"
    assert kafka.avro_converter == "confluent"
    apicurio = AVRO.replace(":8081", ":8080/apis/ccompat/v7")
    assert parse_pipeline(with_kafka(apicurio), ENV).kafka.avro_converter == "apicurio"


def test_our_own_records_have_a_format_of_their_own() -> None:
    assert parse_pipeline(GOOD, ENV).kafka.record_format == "avro"
    address = 'record_format = "avro-registry"\nschema_registry = "http://registry"\n'
    kafka = parse_pipeline(with_kafka(address), ENV).kafka
    assert (kafka.row_format, kafka.record_format) == ("json", "avro-registry")
    assert kafka.avro_converter == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('row_format = "protobuf"', "'protobuf' is not known"),
        ('row_format = "avro"', "needs schema_registry"),
        ('row_format = "avro"\nschema_registry = "registry:8081"', "needs schema_registry"),
        ('row_format = "avro"\nschema_registry = "http://u:p@r"', "holds no user"),
        ('schema_registry = "http://registry"', "have no schema_registry"),
        ('avro_converter = "apicurio"', "'json' has no avro_converter"),
        ('record_format = "protobuf"', "record_format 'protobuf' is not known"),
        ('record_format = "avro-registry"', "'avro-registry' needs schema_registry"),
        (AVRO + 'avro_converter = "other"', "'other' is not known"),
        (AVRO + 'avro_converter = "apicurio"', "needs a schema_registry with"),
        (AVRO + 'schema_registry_user = "u"', "go together"),
        (AVRO + 'schema_registry_user = "u:v"\nschema_registry_password = "p"', "has a colon"),
        ('schema_registry_user = "u"\nschema_registry_password = "p"', "without schema_registry"),
    ],
)
def test_a_wrong_row_format_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        parse_pipeline(with_kafka(text + "\n"), ENV)


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("max_batch_s = 0", "max_batch_s must be 1 or more"),
        ("gather_ms = -1", "gather_ms must be 0 or more"),
        ("statement_connections = 0", "statement_connections must be 1 or more"),
        ("online_ddl = 1", "online_ddl must be of type bool"),
        ("max_batch_mb = true", "max_batch_mb must be of type int"),
    ],
)
def test_a_wrong_setting_of_the_sink_is_refused(setting: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_pipeline(f"{GOOD}\n[sink]\n{setting}\n", ENV)


SHARED = GOOD.replace('target = "merged.t"', 'target = "merged.t"\nrow_topic = "shop.orders"')


def test_the_shards_of_a_route_can_share_a_row_topic() -> None:
    assert parse_pipeline(GOOD, ENV).routes[0].row_topic == ""
    assert parse_pipeline(SHARED, ENV).routes[0].row_topic == "shop.orders"
    more = '[[routes]]\ndatabase = "o"\ntable = "t"\ntarget = "merged.t"\nrow_topic = "o.t"\n'
    assert [rule.row_topic for rule in parse_pipeline(SHARED + more, ENV).routes] == [
        "shop.orders", "o.t",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("shop orders", "must be letters"),
        ("x" * 250, "249 at most"),
        ("__x", "not begin with '__'"),
        ("demo", "a name that topics of 'demo' have"),
        ("demo.ddl", "a name that topics of 'demo' have"),
        ("s1", "a name that topics of 's1' have"),
        ("s1.app.t_1", "a name that topics of 's1' have"),
    ],
)
def test_a_row_topic_that_is_another_topic_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        parse_pipeline(SHARED.replace("shop.orders", name), ENV)


def test_a_row_topic_has_one_target() -> None:
    more = '[[routes]]\ndatabase = "o"\ntable = "t"\ntarget = "m.o"\nrow_topic = "shop.orders"\n'
    with pytest.raises(ConfigError, match=r"is that of merged\.t and of m\.o"):
        parse_pipeline(SHARED + more, ENV)
    many = SHARED.replace("t_.*", "(?P<n>t_.*)").replace("merged.t", r"merged.\\g<n>")
    with pytest.raises(ConfigError, match="row_topic is one topic, and target"):
        parse_pipeline(many, ENV)
    grouped = SHARED.replace("shop.orders", r"shop.\\g<n>")
    with pytest.raises(ConfigError, match="has a reference to a group") as refused:
        parse_pipeline(grouped, ENV)
    assert refused.value.code == "SM-5303"
    with pytest.raises(ConfigError, match="longer than 128 characters"):
        parse_pipeline(SHARED.replace('"s1"', '"' + "s" * 129 + '"'), ENV)


def changed(*changes: tuple[str, str]) -> str:
    """``GOOD`` with texts replaced; each is there."""
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_connections_can_be_secured() -> None:
    text = changed(
        ('"127.0.0.1:9092"', '"k:1"\nclient = { "security.protocol" = "ssl" }'),
        (
            'http://127.0.0.1:8083"',
            'https://c"\nuser = "u"\npassword = "env:P"\ntls = { ca = "/ca" }',
        ),
        ("server_id = 1", 'server_id = 1\ntls = { mode = "required" }'),
        ('"${TARGET_PASSWORD}"', '"file:/p"\ntls = { mode = "verify-ca", ca = "/ca" }'),
        ("[[routes]]", '[connect.client]\n"client.rack" = "r"\n[[routes]]'),
    )
    pipeline = parse_pipeline(text, {})
    assert pipeline.kafka.client == (("security.protocol", "ssl"),)
    assert (pipeline.connect.user, pipeline.connect.password) == ("u", "env:P")
    assert pipeline.connect.tls == Tls(ca="/ca")
    assert pipeline.connect.client == (("client.rack", "r"),)
    assert pipeline.sources[0].tls == Tls(mode="required")
    assert pipeline.target.password == "file:/p"
    assert pipeline.target.tls == Tls(mode="verify-ca", ca="/ca")
    assert parse_pipeline(pipeline_text(pipeline), {}) == pipeline


def test_connect_can_have_several_workers() -> None:
    several = changed((':8083"', ':8083/, http://connect-2:8083"'))
    connect = parse_pipeline(several, ENV).connect
    assert connect.urls == ("http://127.0.0.1:8083", "http://connect-2:8083")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[target]", '[connect.tls]\nca = "/ca"\n[target]', "https://"),
        ("[target]", "[connect.client]\nx = []\n[target]", "must be a text"),
        ("http://127.0.0.1:8083", "http://u:p@127.0.0.1:8083", "has a user in it"),
        (':8083"', ':8083,http://u:p@c2:8083"', "has a user in it"),
        (':8083"', ':8083,"', "is empty"),
        (':8083"\n', ':8083,https://c2:8083"\ntls = { ca = "/ca" }\n', "https://"),
        (':8083"', ':8083"\nuser = "u"', "go together"),
        (':8083"', ':8083"\nuser = "u:v"\npassword = "p"', "has a colon"),
        ("server_id = 1", 'server_id = 1\ntls = "/ca"', "must be a table"),
        ("server_id = 1", 'server_id = 1\ntls = { mode = "on" }', "mode must be"),
        ('"p"', '"env:"', "no environment variable"),
        (':9092"', ':9092"\nschema_registry_tls = { ca = "/ca" }', "https://"),
        (':9092"', ':9092"\nclient = "x"', "must be a table"),
    ],
)
def test_a_wrong_setting_of_security_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_pipeline(changed((old, new)), ENV)


def test_a_route_names_the_operations_that_it_ignores() -> None:
    assert parse_pipeline(GOOD, ENV).routes[0].ignore == ()
    (rule,) = parse_pipeline(GOOD + 'ignore = ["truncate", "delete", "delete"]\n', ENV).routes
    assert rule.ignore == (RowOperation.DELETE, RowOperation.TRUNCATE)
    assert rule.keeps_truncated
    more = 'ignore = ["update"]\nexisting_rows = "hold"\nkeyless = "refuse"\n'
    assert parse_pipeline(GOOD + more, ENV).routes[0].ignore == (RowOperation.UPDATE,)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('ignore = "delete"', "ignore must be a list"),
        ('ignore = ["drop"]', "ignore 'drop' is not known"),
        ('ignore = ["truncate"]\non_truncate = "delete"', "contradict each other"),
        ('ignore = ["update", "delete"]', "would bring the rows as the ignored operations left"),
        (
            'ignore = ["update"]\nexisting_rows = "accept"',
            "ignore names update and not delete: of a table without a primary key",
        ),
        (
            'ignore = ["insert", "delete"]\nexisting_rows = "accept"',
            "ignore names insert and not update",
        ),
    ],
)
def test_what_cannot_be_ignored_together_is_refused(lines: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        parse_pipeline(f"{GOOD}{lines}\n", ENV)


GROUPS = GOOD.replace('database = "app"', 'database = "shop_(?P<region>\\\\w+)_(?P<n>\\\\d+)"')


def test_groups_of_a_routes_expressions_become_origin_columns() -> None:
    more = 'origin = { groups = { region = "_region", n = { name = "_n", type = "INT" } } }\n'
    (rule,) = parse_pipeline(GROUPS + more, ENV).routes
    assert rule.policies.origin.columns == (
        OriginColumn(OriginPart.GROUP, "_region", "region", "varchar(64)"),
        OriginColumn(OriginPart.GROUP, "_n", "n", "int"),
    )
    assert rule.group_values(ShardId("s1", "shop_eu_west_07", "t_1")) == {
        "region": "eu_west",
        "n": "7",
    }


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        ('{ area = "_a" }', "no expression of the route has the group 'area'"),
        ('{ n = { name = "_n", type = "json" } }', "the type of n: 'json' is not varchar(n)"),
        ('{ n = { type = "int" } }', "n must name a column"),
        ("{ n = 1 }", "n must name a column, not 1"),
        ('{ n = { name = "_n", length = 1 } }', "unknown key 'length'"),
        ('"region"', "groups must be a table"),
        ('{ n = "_a", region = "_A" }', "two columns have the same name"),
    ],
)
def test_a_wrong_origin_column_of_a_group_is_refused(groups: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        parse_pipeline(f"{GROUPS}origin = {{ groups = {groups} }}\n", ENV)


def test_an_entry_that_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        parse_pipeline('sources = ["s1"]\n' + re.sub(r"\[\[sources\]\][^[]*", "", GOOD), ENV)
