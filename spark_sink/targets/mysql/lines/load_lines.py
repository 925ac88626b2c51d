"""The makers of lines for LOAD DATA on a server of the MySQL family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardmerge.spark_sink.rows.folding.line_maker import RecordLines
from shardmerge.spark_sink.rows.folding.segment_plan import SegmentPlan
from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.forms import Form

from .encoders import load_lines, load_lines_as_they_are
from .layouts import layout_of
from .library import library
from .record_lines import CompiledRecordLines


@dataclass(frozen=True, slots=True)
class LoadLines:
    """See ``LineMaker``.

    Attributes:
        is_mariadb: Whether the server is MariaDB.
        is_compiled: Whether compiled code makes lines of records, where it is there.
    """

    is_mariadb: bool
    is_compiled: bool = True

    def of_values(
        self, forms: Sequence[Form], columns: Sequence[ColumnValues], nullable: Sequence[bool]
    ) -> list[bytes]:
        """See ``LineMaker``."""
        lines_of = load_lines_as_they_are if self.is_mariadb else load_lines
        return lines_of(forms, columns, nullable)

    def of_records(self, plan: SegmentPlan) -> RecordLines | None:
        """See ``LineMaker``."""
        decoder, code = plan.decoder, library() if self.is_compiled else None
        # Records in Avro have no wrapped form, and odd names no decoder.
        if code is None or decoder.decode is None or decoder.decode_wrapped is None:
            return None
        constants = [constant for _, constant in (*plan.origin, *plan.added)]
        ending = b""
        if constants:
            values = [[constant.value] for constant in constants]
            (line,) = self.of_values(
                [constant.form for constant in constants], values, [v == [None] for v in values]
            )
            ending = b"\t" + line
        layout = layout_of(plan, ending, is_mariadb=self.is_mariadb)
        return None if layout is None else CompiledRecordLines(code, layout)
