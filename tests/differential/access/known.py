"""Differences that are kept, each with its name."""

from __future__ import annotations

from collections.abc import Collection

from tests.differential.access.brokers import CLOSED
from tests.differential.access.case import SENSELESS, Case
from tests.differential.wire.compare import MISSING, Difference

from sharecore.protocol import ApiKey

_UNKNOWN_TOPIC = 3
_SERVER_ERROR = -1


def explain(case: Case, difference: Difference, kinds: Collection[str] = ()) -> str | None:
    """Return the name of a difference that is kept; None for one that nobody knows.

    Args:
        kinds: of the brokers that are compared.
    """
    if "node" in kinds and (name := _explain_node(case, difference)) is not None:
        return name
    if case.may_create and difference.path.startswith("topics[]"):
        # Apache Kafka answers before the topic exists, and the client retries; ours waits for the topic
        apache, ours = difference.apache, difference.ours
        if difference.path == "topics[].partitions[]" and apache is MISSING:
            return "created topics are in the first answer"
        if difference.path == "topics[].error_code" and (apache, ours) == (_UNKNOWN_TOPIC, 0):
            return "created topics are in the first answer"
        if apache is MISSING and ours["error_code"] == 0:
            return "created topics are in the first answer"
        if ours is MISSING and apache["error_code"] == _UNKNOWN_TOPIC:
            return "created topics are in the first answer"
    if case.name.startswith(SENSELESS) and (difference.apache == _SERVER_ERROR or _is_text(difference)):
        return "server error"
    if case.key is ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS and difference.apache == CLOSED:
        return "a refusal that Apache Kafka fails to write"
    if _is_text(difference):
        return _explain_text(case, str(difference.apache))
    return None


def _explain_node(case: Case, difference: Difference) -> str | None:
    """Return the name of a difference between a broker and a node of a tier in front of one."""
    listed = case.key is ApiKey.LIST_CONFIG_RESOURCES and difference.ours is MISSING
    if listed and "resource_name=__transaction_state]" in difference.where:
        return "topics of the cluster itself"
    if case.key is ApiKey.SHARE_GROUP_DESCRIBE and _is_text(difference):
        found = str(difference.apache).removesuffix(" is not a share group.") + " not found."
        if difference.ours == found:
            return "groups of the cluster"
    return None


def _is_text(difference: Difference) -> bool:
    return difference.path.rpartition(".")[2] == "error_message"


def _explain_text(case: Case, apache: str) -> str | None:
    """Return the name of a difference between texts that stand beside the same code."""
    if apache.startswith("Request Request("):
        return "a text that shows Java's request"
    if case.key is ApiKey.FIND_COORDINATOR and apache.startswith("This most likely occurs because"):
        return "a text that says what is wrong"
    return None
