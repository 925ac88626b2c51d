"""Tables beside the target that hold a snapshot's rows until these are copied into the target.

Each attempt to read a snapshot has a table of its own, with a name of its own. So two attempts
never write into one table, even if a process that was taken for dead goes on. A row of
``load_stages`` says which attempt of a load counts, and up to which row it is copied. It is read or
changed in the transaction of what depends on it: of the chunk's mark that it is done, and of the
rows that are copied.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Sequence

from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.spark_sink.loading.load_state import Load

from .control_tables import OPTIONS, make_tables, qualified
from .load_store import LOAD_COLUMNS, LOAD_KEY, OF_LOAD, load_place
from .session import MySqlSession

STAGE_TABLES = {
    "load_stages": f"""({LOAD_COLUMNS}
        stage VARCHAR(64) NOT NULL,
        copied_to BIGINT NOT NULL,
        PRIMARY KEY ({LOAD_KEY})
    )""",
}
"""``stage``: the attempt's table. ``copied_to``: number of its last row that is in the target."""


class StageStore:
    """The stages of one pipeline's loads.

    Args:
        session: The caller's.
    """

    def __init__(self, session: MySqlSession, control_database: str, pipeline: str) -> None:
        self._session = session
        self._database = control_database
        self._pipeline = pipeline

    def table(self, name: str) -> str:
        """The quoted, qualified name of a table."""
        return qualified(self._database, name)

    def prepare(self) -> None:
        """Make the table where it is missing; outside a transaction."""
        make_tables(self._session, self._database, STAGE_TABLES)

    def new_name(self, shard: ShardId) -> str:
        """A name for a table that no other attempt has."""
        return f"{self._prefix(shard)}{uuid.uuid4().hex[:12]}"

    def register(self, load: Load, stage: str) -> None:
        """Within a transaction: from now on only this attempt counts."""
        self._session.execute(
            f"REPLACE INTO {self.table('load_stages')} ({LOAD_KEY}, stage, copied_to)"
            " VALUES (%s, %s, %s, %s, %s, %s, 0)",
            (*load_place(self._pipeline, load), stage),
        )

    def make(self, stage: str, columns: Sequence[tuple[str, str]]) -> None:
        """Make an attempt's table; outside a transaction.

        Args:
            stage: Its name.
            columns: Names and types.
        """
        of_rows = "".join(f", {quote_identifier(name)} {kind} NULL" for name, kind in columns)
        self._session.execute(
            f"CREATE TABLE {self.table(stage)} ("
            f"{ROW} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY{of_rows}) {OPTIONS}"
        )

    def others(self, shard: ShardId, stage: str) -> list[str]:
        """The tables of a shard's other attempts.

        Within the transaction that registers ``stage``: no later attempt can begin before it ends,
        so none of them is a later attempt's.
        """
        return [name for name in self._tables_of(shard) if name != stage]

    def tables(self) -> list[str]:
        """The tables of all attempts of the pipeline, as far as they have begun."""
        return [name for shard in self.shards() for name in self._tables_of(shard)]

    def _tables_of(self, shard: ShardId) -> list[str]:
        prefix = self._prefix(shard)
        found = self._session.query(
            "SELECT TABLE_NAME FROM information_schema.TABLES"
            " WHERE TABLE_SCHEMA = %s AND LEFT(TABLE_NAME, %s) = %s",
            (self._database, len(prefix), prefix),
        )
        return [str(name) for (name,) in found]

    def drop(self, stages: Iterable[str]) -> None:
        """Drop attempts' tables where they are there; outside a transaction."""
        for name in stages:
            self._session.execute(f"DROP TABLE IF EXISTS {self.table(name)}")

    def current(self, load: Load) -> tuple[str, int] | None:
        """Within a transaction: the attempt that counts, and up to which row it is copied.

        Other transactions that ask the same wait until this one ends.
        """
        rows = self._session.query(
            f"SELECT stage, copied_to FROM {self.table('load_stages')} WHERE {OF_LOAD} FOR UPDATE",
            load_place(self._pipeline, load),
        )
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def advance(self, load: Load, copied_to: int) -> None:
        """Within the transaction of the rows: they are copied up to this row."""
        self._session.execute(
            f"UPDATE {self.table('load_stages')} SET copied_to = %s WHERE {OF_LOAD}",
            (copied_to, *load_place(self._pipeline, load)),
        )

    def shards(self) -> list[ShardId]:
        """The shards that have, or had, an attempt whose table may still be there."""
        return [
            ShardId(*place)
            for place in self._session.query(
                "SELECT DISTINCT shard_source, shard_database, shard_table"
                f" FROM {self.table('load_stages')} WHERE pipeline = %s",
                (self._pipeline,),
            )
        ]

    def forget(self, load: Load) -> None:
        """Drop the table of a load that is complete; outside a transaction.

        A later load of the shard is not touched, which may have begun meanwhile.
        """
        current = self.current(load)
        if current is None:
            return
        self.drop([current[0]])
        self._session.execute(
            f"DELETE FROM {self.table('load_stages')} WHERE {OF_LOAD}",
            load_place(self._pipeline, load),
        )

    def _prefix(self, shard: ShardId) -> str:
        names = "\0".join((self._pipeline, shard.source, shard.database, shard.table))
        return f"staged_{hashlib.sha256(names.encode()).hexdigest()[:16]}_"


ROW = "shardmerge_row"
"""The column that numbers the rows of an attempt."""
