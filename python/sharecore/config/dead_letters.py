"""Settings of dead-letter records (KIP-1191): the broker's and a group's."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import Dynamic, Kind, setting
from sharecore.errors import ConfigError
from sharecore.topic_names import NAME_LENGTH_MAX, is_legal_name

RESERVED_PREFIX = "__"
"""Topics with this prefix cannot be dead-letter topics."""


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class DeadLetterSettings:
    """Topics that groups may use for dead-letter records; checked when a record is written."""

    errors_deadletterqueue_auto_create_topics_enable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether a missing dead-letter topic is created with the first dead-letter record.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    errors_deadletterqueue_topic_name_prefix: str = setting(
        Kind.STRING,
        "dlq.",
        "Required prefix of dead-letter topic names; empty: any name is allowed.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class GroupDeadLetterSettings:
    """What happens to records that a group rejects, or that reach the delivery limit."""

    errors_deadletterqueue_copy_record_enable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether a dead-letter record contains a copy of the original record, or only its position.",
    )
    errors_deadletterqueue_topic_name: str = setting(
        Kind.STRING, "", "The group's dead-letter topic; empty: off."
    )
    errors_deadletterqueue_required: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether records wait for a usable dead-letter topic instead of being archived without a "
        "dead-letter record.",
        own=True,
    )

    def check_dead_letters(self) -> None:
        """Raise ConfigError for a name that no dead-letter topic can have.

        Whether the topic exists and may be used is checked when a dead-letter record is written.
        """
        name = self.errors_deadletterqueue_topic_name
        if name and not is_legal_name(name):
            raise ConfigError(
                f"errors.deadletterqueue.topic.name: DLQ topic name '{name[:NAME_LENGTH_MAX]}' is illegal; "
                f"allowed: up to {NAME_LENGTH_MAX} ASCII letters, digits, '.', '_' and '-'"
            )
        if self.errors_deadletterqueue_topic_name.startswith(RESERVED_PREFIX):
            raise ConfigError(
                f"errors.deadletterqueue.topic.name: DLQ topic name must not start with '{RESERVED_PREFIX}'"
            )
