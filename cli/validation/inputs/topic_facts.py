"""Reads from Kafka what is known of targets, and whether every statement is decided."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from shardmerge.cli.clients import topic_reader
from shardmerge.cli.views.picture import Picture
from shardmerge.cli.views.reading import read_picture
from shardmerge.connectors.debezium.open_requests import OpenRequests, request_of
from shardmerge.connectors.debezium.signals import notice
from shardmerge.connectors.kafka.record_formats import json_of_connectors
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.schema_changes import ChangeId

from .table_facts import Readings, TableFacts, facts_of


class TopicFacts:
    """What the topics of a pipeline say. They are read anew each time.

    Args:
        pipeline: The pipeline.
        shown: Gives what the topics say as it has to be compared.
    """

    def __init__(
        self, pipeline: Pipeline, shown: Callable[[Picture], Picture] = lambda picture: picture
    ) -> None:
        self._pipeline, self._shown = pipeline, shown
        self._changes: dict[tuple[str, int, int], ChangeId] = {}
        """Target, version and time of a decision → the change that it decides; kept, because a
        decision does not change, and to decode all of them takes seconds."""

    def picture(self) -> Picture:
        """What the topics say of all targets.

        Raises:
            StackError: Kafka does not answer, or has no topics of this pipeline.
        """
        return read_picture(self._pipeline, lambda done, whole: None)

    def of(self, target: TargetTable) -> Callable[[], TableFacts]:
        """A function that asks for what is known of a target."""

        def facts() -> TableFacts:
            with topic_reader(self._pipeline) as reader:
                ends = self._schema_ends(reader)
                # A decision precedes its request, so the requests are read later.
                picture = self.picture()
                found = facts_of(self._shown(picture), target, self._readings(reader))
                decided = self._all_decided(reader, picture, ends)
            return replace(found, executed=found.executed and decided)

        return facts

    def _schema_ends(self, reader: TopicReader) -> dict[str, int]:
        names = [topics.schema_changes(self._pipeline, s.name).name for s in self._pipeline.sources]
        return {extent.topic: extent.end for extent in reader.extents(names)}

    def _all_decided(self, reader: TopicReader, picture: Picture, ends: dict[str, int]) -> bool:
        """Whether no record of a source's schema changes lies behind the last decided one."""
        last: dict[str, int] = {}
        for decided in picture.decided:
            name = (decided.target, decided.version, decided.written_ms)
            if (change := self._changes.get(name)) is None:
                change = self._changes[name] = decided.decision.id
            last[change.source] = max(last.get(change.source, -1), change.offset)
        for extent in reader.extents([*ends]):
            begin = max(extent.begin, last.get(extent.topic, -1) + 1)
            rest = replace(extent, begin=begin, end=ends[extent.topic])
            if begin < rest.end and any(True for _ in reader.records(rest)):
                return False
        return True

    def _readings(self, reader: TopicReader) -> Readings:
        asked, told = topics.signals(self._pipeline).name, topics.notifications(self._pipeline).name
        records = [r for e in reader.extents([asked, told]) for r in reader.records(e)]
        as_json = json_of_connectors(self._pipeline.kafka)
        requests, ids = OpenRequests(), set()
        for record in sorted(records, key=lambda r: r.timestamp_ms):
            if record.topic == asked:
                if (request := request_of(record.key, record.value)) is not None:
                    requests.add_request(request, 0.0)
                    ids.add(str(json.loads(request.value)["id"]))
            elif (said := notice(as_json(record.value))) is not None:
                requests.add_notice(said, 0.0)
        names = [source.name for source in self._pipeline.sources]
        still = {(name, request.table) for name in names for request in requests.of(name)}
        return Readings(still, ids)
