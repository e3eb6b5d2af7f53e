"""What `sharecore spark redrive` goes by: the history of a group's state, or a dead-letter topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sharecore.admin.letters import Wanted

Row = dict[str, Any]
"""Of a plan, a share partition each: topic, partition, and how many are rejected, exhausted, done before."""


class History:
    """Records that a group archived, as far as the history of its state has them."""

    def __init__(
        self, settings: dict[str, str], group: str, topics: list[str], outcome: str, to: str | None
    ) -> None:
        from sharecore.jobs.cluster import delivery_limit

        self._settings, self._group, self._topics, self._outcome, self._to = (
            settings,
            group,
            topics,
            outcome,
            to,
        )
        self._limit = delivery_limit(settings, group)
        self._planned: DataFrame | None = None
        self.nothing = f"the history of group {group} has no archived record"
        self.facts = {"group": group}

    def memory(self, out: str) -> str:
        """Return where produced records are noted."""
        return f"{out.rstrip('/')}/redriven"

    def plan(self, spark: SparkSession, out: str | None) -> list[Row]:
        from pyspark.sql import functions as F

        from sharecore.jobs.progress import progress
        from sharecore.jobs.redrive_plan import plan
        from sharecore.jobs.state import read_state

        with progress(spark.sparkContext, "reading history"):
            history = read_state(spark, self._settings, "history", group=self._group, topics=self._topics)
            done = None if out is None else done_before(spark, self.memory(out))
            if done is not None:
                done = done.where(F.col("group") == self._group)
            planned = plan(spark, history, self._limit, outcome=self._outcome, done=done)
            self._planned = planned.where("topic is not null").cache()
            return _summed(self._planned)

    def redrive(self, spark: SparkSession, rows: list[Row]) -> DataFrame:
        from sharecore.jobs.cluster import topic_of
        from sharecore.jobs.redrive import Target, redrive

        assert self._planned is not None
        topics = targets(self._to, rows)
        partitions = {topic: len(topic_of(self._settings, topic)[1]) for topic in topics}
        return redrive(self._planned, self._settings, Target(self._group, self._to, partitions))


class Letters:
    """What the letters in a dead-letter topic are about."""

    def __init__(
        self, settings: dict[str, str], topic: str, wanted: Wanted, topics: list[str], to: str | None
    ) -> None:
        self._settings, self._topic, self._wanted, self._topics, self._to = (
            settings,
            topic,
            wanted,
            topics,
            to,
        )
        self._found: DataFrame | None = None
        self.nothing = f"topic {topic} holds no such letter"
        self.facts = {"dead letters": topic, "group": wanted.group or "all"}

    def memory(self, out: str) -> str:
        """Return where produced records are noted."""
        return f"{out.rstrip('/')}/redriven-letters"

    def plan(self, spark: SparkSession, out: str | None) -> list[Row]:
        from pyspark.sql import functions as F

        from sharecore.admin.letters import EXHAUSTED
        from sharecore.jobs.progress import progress
        from sharecore.jobs.redrive_letters import PLACE, letter_topic, letters

        topic = letter_topic(self._settings, self._topic)
        with progress(spark.sparkContext, "reading letters"):
            found = letters(spark, self._settings, topic, self._wanted, topics=self._topics)
            before = None if out is None else done_before(spark, self.memory(out))
            finished = F.lit(0)
            if before is not None:
                known = before.select(*PLACE).distinct()
                self._found = found.join(known, [*PLACE], "left_anti")
                found = found.join(known.withColumn("known", F.lit(1)), [*PLACE], "left")
                finished = F.coalesce("known", F.lit(0))
            else:
                self._found = found
            exhausted = F.when(F.col("cause") == EXHAUSTED, 1).otherwise(0)
            return _summed(
                found.select(
                    "topic",
                    F.col("topicPartition").alias("partition"),
                    finished.alias("done"),
                    ((1 - finished) * exhausted).alias("exhausted"),
                    ((1 - finished) * (1 - exhausted)).alias("rejected"),
                )
            )

    def redrive(self, spark: SparkSession, rows: list[Row]) -> DataFrame:
        from sharecore.jobs.cluster import topic_of
        from sharecore.jobs.redrive_letters import Sources, logs, redrive_letters

        assert self._found is not None
        wanted = {(row["topic"], row["partition"]) for row in rows}
        partitions = {topic: len(topic_of(self._settings, topic)[1]) for topic in targets(self._to, rows)}
        sources = Sources(self._to, logs(self._settings, wanted), partitions)
        return redrive_letters(self._found, self._settings, sources)


def targets(to: str | None, rows: list[Row]) -> set[str]:
    """Return the topics that records go to."""
    return {row["topic"] for row in rows} if to is None else {to}


def done_before(spark: SparkSession, path: str) -> DataFrame | None:
    """Return the records of earlier runs; None without any."""
    from pyspark.errors import AnalysisException

    try:
        return spark.read.parquet(path)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None


def _summed(planned: DataFrame) -> list[Row]:
    grouped = planned.groupBy("topic", "partition").sum("rejected", "exhausted", "done")
    rows = [row.asDict() for row in grouped.collect()]
    named = [
        {
            "topic": row["topic"],
            "partition": row["partition"],
            **{name: row[f"sum({name})"] for name in ("rejected", "exhausted", "done")},
        }
        for row in rows
    ]
    return sorted(named, key=lambda row: (row["topic"], row["partition"]))
