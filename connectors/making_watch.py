"""Makes a pipeline's connectors, or changes them to what the pipeline file says, each on its own.

A source that is away, or whose connector has failed, is stopped or is refused, keeps nobody from
the other sources: what is wrong with it is logged, and it is tried again, after growing pauses.
Nothing waits until a connector runs. A connector that is being repaired is left alone until that
has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.growing_pause import GrowingPause
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.sources.signal_table import prepare_signal_table
from shardmerge.connectors.watch_loop import look_until
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .deploy import Done, make_or_change, prepare_cluster

log = logger(__name__)
_MAX_PAUSE_S = 60.0
_LOOK_S = 0.5


class MakingWatch:
    """Makes or changes each connector of a pipeline once. One thread uses it.

    Args:
        pipeline: Whose topics and connectors.
        rest: The Connect cluster.
        repairs: Connector's name → its repair.
        shortest_s: The first pause before something is tried again; it doubles, up to a minute.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        rest: ConnectRest,
        repairs: Mapping[str, SourceRepair],
        shortest_s: float = 3.0,
    ) -> None:
        self._pipeline, self._rest, self._repairs = pipeline, rest, repairs
        self._shortest_s = shortest_s
        self._is_prepared = False
        self._whole = self._pause()
        self._open = {source.name: self._pause() for source in pipeline.sources}

    def unfinished(self) -> tuple[str, ...]:
        """The sources whose connector is not yet as the pipeline file says."""
        return tuple(self._open)

    def look(self, now_s: float) -> None:
        """Try what is due.

        Args:
            now_s: A monotonic clock's time.

        Raises:
            StackError: Kafka or Connect does not answer, or lacks what every connector needs. No
                source was looked at.
        """
        if not self._is_prepared:
            if not self._whole.is_over(now_s):
                return
            self._whole.begin(now_s)
            prepare_cluster(self._pipeline, self._rest)
            self._is_prepared = True
        for source in self._pipeline.sources:
            if source.name in self._open and self._open[source.name].is_over(now_s):
                self._look_at(source, now_s)

    def run(self, stop: threading.Event) -> None:
        """Look again and again until ``stop`` is set; what does not answer is awaited."""
        look_until(stop, self.look, _LOOK_S, "makings")

    def _pause(self) -> GrowingPause:
        return GrowingPause(self._shortest_s, _MAX_PAUSE_S)

    def _look_at(self, source: Source, now_s: float) -> None:
        name = connector_name(self._pipeline, source)
        self._open[source.name].begin(now_s)
        try:
            with self._repairs[name].alone() as is_ours:
                done = Done.LEFT
                if is_ours:
                    done = make_or_change(self._pipeline, source, self._rest)
            if done is Done.UNCHANGED:
                # A connector that was made without a signal table takes no second snapshot, and
                # ignored the table's database until it was changed. So it must see the CREATE TABLE
                # in the binlog.
                prepare_signal_table(self._pipeline, source)
        except ShardMergeError as error:
            log.warning("connector_delayed", connector=name, error=error)
            return
        if done is Done.LEFT:
            log.info("connector_left", connector=name)
        elif done is Done.CHANGED:
            log.info("connector_changed", connector=name)
        else:
            if done is Done.MADE:
                log.info("connector_made", connector=name)
            del self._open[source.name]
