"""``shardmerge plan --rows`` asks a real server how many rows a fix-up reads again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.local.servers.mysql import PASSWORD, USER

from .compared_line import execute

ROWS = 300
TABLE = "(id INT PRIMARY KEY, a INT)"
PIPELINE = """
[pipeline]
name = "rows"
[kafka]
bootstrap_servers = "127.0.0.1:1"
[connect]
url = "http://127.0.0.1:1"
[target]
host = "127.0.0.1"
port = 1
user = "u"
password = "-"
[[routes]]
database = "app"
table = 't_\\d+'
target = "merged.t"
[[sources]]
name = "s1"
host = "127.0.0.1"
port = {port}
user = "{user}"
password = "{password}"
server_id = 1
"""


def test_a_fix_up_is_shown_with_the_number_of_rows(
    server_port: Callable[[str], int], tmp_path: Path
) -> None:
    port = server_port("mysql80")
    values = ", ".join(f"({n}, 1)" for n in range(ROWS))
    execute(
        port,
        "DROP DATABASE IF EXISTS app",
        "CREATE DATABASE app",
        *(f"CREATE TABLE app.t_{n} {TABLE}" for n in (1, 2)),
        f"INSERT INTO app.t_1 VALUES {values}",
        "ANALYZE TABLE app.t_1, app.t_2",
    )
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE.format(port=port, user=USER, password=PASSWORD), encoding="utf-8")
    (tmp_path / "t.sql").write_text(f"CREATE TABLE t {TABLE};\n", encoding="utf-8")
    change = "ALTER TABLE {table} DROP COLUMN a, ADD COLUMN a INT DEFAULT 7;\n"
    (tmp_path / "change.sql").write_text(change, encoding="utf-8")
    words = ["plan", str(tmp_path / "change.sql"), "--pipeline", str(file), "--shard", "s1/app.t_1"]
    words += ["--tables", f"s1/app.t_{{1..2}}={tmp_path / 't.sql'}"]

    def told(*more: str) -> str:
        result = CliRunner().invoke(main, [*words, *more])
        assert result.exit_code == 0, result.output
        return result.output

    # The rows of t_1 got 7 without row events. InnoDB's number is exact for a table of few pages.
    assert "about 300 rows" in told("--rows")
    assert "about 300 rows" in told("--rows", "--markdown")
    assert "about" not in told()
