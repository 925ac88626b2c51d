"""Rollouts, and calls of ``shardmerge plan`` with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from shardmerge.cli.main import main

NOTHING = "no decision: it changes no table's schema, or no connector reads its database"
ADDING = """
tables:
  - shards: s{1..2}/app.t_{1..2}
    sql: CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b VARCHAR(20))
steps:
  - shards: "*"
    sql: ALTER TABLE {table} ADD COLUMN n INT
"""
CONFLICT = """
tables:
  - shards: s{1,2}/app.t_1
    sql: CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)
steps:
  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 DROP COLUMN a}
  - {shard: s1/app.t_1, sql: ALTER TABLE t_1 ADD COLUMN a DATE}
  - {shard: s2/app.t_1, sql: ALTER TABLE t_1 DROP COLUMN a}
  - {shard: s2/app.t_1, sql: ALTER TABLE t_1 ADD COLUMN a DATE}
"""


def plan(pipeline: Path, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["plan", "--pipeline", str(pipeline), *map(str, arguments)])


def rollout(pipeline: Path, text: str, *arguments: object) -> Result:
    path = pipeline.with_name("rollout.yaml")
    path.write_text(text, encoding="utf-8")
    return plan(pipeline, path, *arguments)


def shown(pipeline: Path, text: str, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rollout(pipeline, text, "--json", *arguments).stdout)
    return found
