"""MySQL, MariaDB and TiDB as a target: sessions, control tables, and tasks that write rows."""

from __future__ import annotations

from shardmerge.connectors.access.lease_names import names_of, session_mark, session_names
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.schemas.pipeline.server_differences import refuse_differences, target_differences
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import TableComparer
from shardmerge.spark_sink.targets.mysql.ddl.drift_store import MySqlDriftStore
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.ddl.table_looks import MySqlLooks
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig

from .control import ControlStore
from .lease import MySqlLease
from .loads import MySqlLoads
from .session import MySqlAddress, MySqlSession

log = logger(__name__)


class MySqlTarget:
    """See ``interface.Target``."""

    def __init__(self, settings: SinkSettings, pipeline: Pipeline) -> None:
        target = self._target = pipeline.target
        self.config = ApplyConfig(
            kafka=pipeline.kafka,
            target=MySqlAddress.of(target),
            control_database=target.control_database,
            pipeline=pipeline.name,
            lock_wait_timeout_s=pipeline.sink.lock_wait_timeout_s,
            registry=RegistryAddress.of(pipeline.kafka),
            compiled_code=settings.compiled_code,
        ).for_kind(target.kind)
        self._online_ddl = pipeline.sink.online_ddl
        self._shard_columns = {
            c.name for route in pipeline.routes for c in route.policies.origin.columns
        }
        self._session = self.config.session()
        self.state = self._control_on(self._session)
        self.batches = BatchRunner(settings, self.config, pipeline.sink.spark_min_records)
        self.drift = MySqlDriftStore(self._session, self.state, pipeline.name)
        # The lease ends by a silence of its own.
        own = MySqlSession(self.config.target, lock_wait_timeout_s=self.config.lock_wait_timeout_s)
        mark = session_mark(target.control_database, pipeline.name)
        self.lease = MySqlLease(
            own, self._control_on(own).epoch, *names_of(pipeline), session_names(mark)
        )
        self._drift_ignore = pipeline.sink.drift_ignore
        self.loads = MySqlLoads(self._session, self.state, self.config, self.batches.spark)

    def check_server(self) -> None:
        """See ``interface.Target``; a newer release of the same version is only logged."""
        differences = target_differences(self._target, self._session.facts.version_text)
        refuse_differences("the target", differences)
        for each in differences:
            log.warning("target_differs", reason=each.seen, hint=each.change, code=each.code)
        # A sink that gets the lease ends sessions of sinks that are silent; this one is its own.
        self._session.close()

    def journal(self, epoch: int) -> Journal:
        """On the session of ``state``."""
        return self._journal_on(self._session, self.state, epoch)

    def journal_of_thread(self, epoch: int) -> Journal:
        """On a session of its own."""
        session = self.config.session()
        return self._journal_on(session, self._control_on(session), epoch)

    def looks_of_thread(self) -> MySqlLooks:
        """On a session of its own."""
        session = self.config.session()
        journal = self._control_on(session).table("ddl_journal")
        comparer = TableComparer(session, journal, self.config.pipeline, self._drift_ignore)
        return MySqlLooks(session, comparer)

    def close(self) -> None:
        """Stop Spark, end the connections."""
        self._session.close()
        self.lease.close()
        self.batches.stop()

    def _control_on(self, session: MySqlSession) -> ControlStore:
        return ControlStore(session, self.config.control_database, self.config.pipeline)

    def _journal_on(self, session: MySqlSession, control: ControlStore, epoch: int) -> Journal:
        wait_s = self.config.lock_wait_timeout_s
        return Journal(
            session,
            control,
            self.config.pipeline,
            epoch,
            wait_s,
            online=self._online_ddl,
            shard_columns=self._shard_columns,
        )
