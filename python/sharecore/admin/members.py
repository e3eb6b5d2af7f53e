"""Members of groups of any type: list them, and remove them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from sharecore.client.wire.refusals import accept
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.protocol.calls import Call


class _Member(Protocol):
    @property
    def member_id(self) -> str: ...

    @property
    def client_id(self) -> str: ...

    @property
    def client_host(self) -> str: ...


class _Group(Protocol):
    @property
    def members(self) -> Sequence[_Member]: ...


class _Described(Protocol):
    @property
    def groups(self) -> Sequence[_Group]: ...


_LEAVING = -1
_DESCRIBED_BY: dict[str, tuple[Call[_Described], str]] = {
    "share": (calls.SHARE_GROUP_DESCRIBE, "group_ids"),
    "consumer": (calls.CONSUMER_GROUP_DESCRIBE, "group_ids"),
    "classic": (calls.DESCRIBE_GROUPS, "groups"),
}


class GroupMember(NamedTuple):
    """A member.

    Args:
        instance_id: of a static member.
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None

    def __str__(self) -> str:
        return f"{self.member_id} ({self.client_id} at {self.host})"


async def group_members(transport: Transport, group_id: str, kind: str) -> list[GroupMember]:
    """Return the members of a group.

    Args:
        kind: share, consumer or classic.

    Raises:
        KafkaError: UNSUPPORTED_VERSION for another type; the broker refused, or did not answer.
    """
    if kind not in _DESCRIBED_BY:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"members of {kind} groups are not listed here")
    call, names = _DESCRIBED_BY[kind]
    message = {names: [group_id], "include_authorized_operations": False}
    group = await transport.coordinator(group_id, call, message, lambda answer: answer.groups[0])
    return [
        GroupMember(
            member.member_id,
            member.client_id,
            member.client_host,
            getattr(member, "instance_id", None) or getattr(member, "group_instance_id", None),
        )
        for member in group.members
    ]


async def remove_members(
    transport: Transport, group_id: str, kind: str, members: Iterable[GroupMember]
) -> None:
    """Remove members from their group; members that still run rejoin at their next heartbeat.

    Args:
        kind: share, consumer or classic.

    Raises:
        KafkaError: the broker refused, or did not answer.
    """
    if kind == "classic":
        leaving = [
            {"member_id": member.member_id, "group_instance_id": member.instance_id, "reason": "removed"}
            for member in members
        ]
        message: dict[str, object] = {"group_id": group_id, "members": leaving}
        answer = await transport.coordinator(group_id, calls.LEAVE_GROUP, message, lambda answer: answer)
        for each in answer.members:
            if each.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
                accept(each)
        return
    call: Call[object] = calls.SHARE_GROUP_HEARTBEAT if kind == "share" else calls.CONSUMER_GROUP_HEARTBEAT
    for member in members:
        message = {
            "group_id": group_id,
            "member_id": member.member_id,
            "member_epoch": _LEAVING,
            "instance_id": member.instance_id,
            "rack_id": None,
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": None,
        }
        try:
            await transport.coordinator(group_id, call, message, lambda answer: answer)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                raise
