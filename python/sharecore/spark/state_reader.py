"""The batch source `sharestate`: `__share_group_state` as history, or the current state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from sharecore.errors import KafkaError
from sharecore.spark import state_files, state_wire
from sharecore.spark.state_columns import COLUMNS
from sharecore.spark.state_options import StateOptions, read_state_options
from sharecore.spark.state_parts import StateLog, StatePartition
from sharecore.spark.state_read import read_state


class ShareStateSource(DataSource):
    """`spark.read.format("sharestate")`: share state of a cluster or of files; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "sharestate"

    def schema(self) -> str:
        read_state_options(self.options)
        return COLUMNS

    def reader(self, schema: StructType) -> ShareStateReader:
        return ShareStateReader(read_state_options(self.options))


class ShareStateReader(DataSourceReader):
    """One task a partition of the state topic; a history of an Apache broker's files one a segment."""

    def __init__(self, options: StateOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        options = self._options
        try:
            if options.path is not None:
                found = state_files.plan(options.path, options.view)
            else:
                found = state_wire.plan(options.connection)
        except KafkaError as error:
            raise RuntimeError(f"share state source: {self._explained(error)}") from error
        return cast("list[InputPartition]", found)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # without partitions, Spark creates one of its own
        if not isinstance(partition, StatePartition):
            return
        try:
            yield from read_state(partition, self._log(partition), self._options)
        except KafkaError as error:
            raise RuntimeError(f"share state source: {self._explained(error)}") from error

    def _explained(self, error: KafkaError) -> KafkaError:
        return error if self._options.path is not None else state_wire.explain(error, self._options.servers)

    def _log(self, part: StatePartition) -> StateLog:
        if part.files:
            return state_files.SegmentLog(part)
        if self._options.path is not None:
            return state_files.DataDirLog(part, self._options.path)
        return state_wire.WireLog(part, self._options.connection)
