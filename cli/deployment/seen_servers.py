"""Asks servers for what a first pipeline file says about them."""

from __future__ import annotations

from collections.abc import Mapping

import pymysql

from shardmerge.cli.clients import mysql_cursor
from shardmerge.connectors.access.mysql import mysql_error
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import SIGNAL_DATABASE_PREFIX
from shardmerge.schemas.model.server_facts import server_facts
from shardmerge.schemas.pipeline.settings import Target

from .first_file import Address, Seen

_SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")


def look_at(address: Address, env: Mapping[str, str], *, tables: bool) -> Seen:
    """What a server tells. Without an answer ``Seen.why`` says why not; no error is raised.

    Args:
        address: Of the server.
        env: Has its password, under ``address.password_variable``.
        tables: Whether its tables are asked for.
    """
    password = env.get(address.password_variable)
    if password is None:
        return Seen(None, why=f"the environment has no {address.password_variable}")
    server = Target(address.host, address.port, address.user, password)
    try:
        with mysql_cursor(server) as cursor:
            cursor.execute("SELECT VERSION()")
            version = str(cursor.fetchall()[0][0])
            cursor.execute("SHOW GLOBAL VARIABLES")
            variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
            facts = server_facts(version, variables, {})
            if not tables:
                return Seen(facts)
            cursor.execute(
                "SELECT table_schema, table_name FROM information_schema.tables"
                " WHERE table_type = 'BASE TABLE' AND table_schema NOT IN %s ORDER BY 1, 2",
                (_SYSTEM,),
            )
            found = tuple((str(database), str(table)) for database, table in cursor.fetchall())
            if facts.lower_case_table_names:
                found = tuple((database.lower(), table.lower()) for database, table in found)
    except (pymysql.MySQLError, ConfigError) as error:
        return Seen(None, why=mysql_error(error))
    own = (pair for pair in found if not pair[0].startswith(SIGNAL_DATABASE_PREFIX))
    return Seen(facts, tuple(own))
