"""Settings of dead letters (KIP-1191): the broker's, and a group's."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import Dynamic, Kind, setting
from sharecore.errors import ConfigError
from sharecore.topic_names import NAME_LENGTH_MAX, is_legal_name

RESERVED_PREFIX = "__"
"""What names of topics begin with that no group may have its letters in."""


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class DeadLetterSettings:
    """Which topics groups may have their letters in; looked at when a letter is written."""

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
    """Where a group's records go that it rejects or gives up."""

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
        """Raise ConfigError for a topic that no group can ever have its letters in.

        Whether there is such a topic, and whether it may be used, is found out when a letter is written.
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
