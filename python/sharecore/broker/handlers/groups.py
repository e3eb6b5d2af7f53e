"""Classic groups, and the lists of groups of all types."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import TYPE_CHECKING

from sharecore.broker.handlers.described_groups import describe_each
from sharecore.broker.requests.context import NOT_REQUESTED, RequestContext, Result
from sharecore.coordinator.classic import (
    ClassicGroup,
    ClassicState,
    JoinRequest,
    JoinResult,
    Leaving,
    SyncRequest,
    SyncResult,
)
from sharecore.coordinator.consumer.group import ConsumerGroup
from sharecore.coordinator.share.group import ShareGroup
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Begun, Done, Gather, Steps, promise, reply

if TYPE_CHECKING:
    from sharecore.protocol import messages

_REBALANCE_TIMEOUT_SINCE = 1
_MEMBER_ID_REQUIRED_SINCE = 4
_NULL_PROTOCOL_SINCE = 7
_SKIP_ASSIGNMENT_SINCE = 9
_PROTOCOL_REQUIRED_SINCE = 5
_MEMBERS_SINCE = 3
_NOT_FOUND_SINCE = 6


def join_group(
    context: RequestContext, request: messages.JoinGroupRequest
) -> Result[messages.JoinGroupResponse]:
    """Join a classic group's next generation; answered once that is complete. Needs READ on the group."""
    version = context.api_version
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(request, version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return _refused(request, version, ErrorCode.INVALID_GROUP_ID)
    joining = JoinRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.connection.peer_host}",
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms
            if version >= _REBALANCE_TIMEOUT_SINCE
            else request.session_timeout_ms
        ),
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=[(protocol.name, protocol.metadata) for protocol in request.protocols],
        must_return=version >= _MEMBER_ID_REQUIRED_SINCE,
        can_skip_assignment=version >= _SKIP_ASSIGNMENT_SINCE,
    )

    def answer(result: JoinResult) -> messages.JoinGroupResponse:
        protocol = result.protocol or (None if version >= _NULL_PROTOCOL_SINCE else "")
        return {
            "error_code": result.error,
            "generation_id": result.generation,
            "protocol_type": result.protocol_type,
            "protocol_name": protocol,
            "leader": result.leader,
            "skip_assignment": result.skip_assignment,
            "member_id": result.member_id,
            "members": [
                {"member_id": member_id, "group_instance_id": instance_id, "metadata": metadata}
                for member_id, instance_id, metadata in result.members
            ],
        }

    return promise(lambda done: context.broker.groups.classic.join(joining, done), answer)


def _refused(request: messages.JoinGroupRequest, version: int, code: ErrorCode) -> messages.JoinGroupResponse:
    return {
        "error_code": code,
        "member_id": request.member_id,
        "protocol_name": None if version >= _NULL_PROTOCOL_SINCE else "",
    }


def sync_group(
    context: RequestContext, request: messages.SyncGroupRequest
) -> Result[messages.SyncGroupResponse]:
    """Return a classic member's assignment, once the leader has provided all; needs READ on the group."""
    if context.api_version >= _PROTOCOL_REQUIRED_SINCE and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        return {"error_code": ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        return {"error_code": ErrorCode.INVALID_GROUP_ID}
    syncing = SyncRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={each.member_id: each.assignment for each in request.assignments},
    )

    def answer(result: SyncResult) -> messages.SyncGroupResponse:
        return {
            "error_code": result.error,
            "protocol_type": result.protocol_type,
            "protocol_name": result.protocol,
            "assignment": result.assignment,
        }

    return promise(lambda done: context.broker.groups.classic.sync(syncing, done), answer)


def heartbeat(context: RequestContext, request: messages.HeartbeatRequest) -> messages.HeartbeatResponse:
    """Renew the session of a classic-group member; raise KafkaError if it must rejoin."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    context.broker.groups.classic.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return {}


def leave_group(
    context: RequestContext, request: messages.LeaveGroupRequest
) -> Result[messages.LeaveGroupResponse]:
    """Remove members of a classic group; an operator may also remove members of a consumer group."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    groups = context.broker.groups
    if context.api_version < _MEMBERS_SINCE:
        leaving = [Leaving(request.member_id)]
    else:
        leaving = [
            Leaving(member.member_id, member.group_instance_id, member.reason or "it left")
            for member in request.members
        ]
    codes: list[ErrorCode] = []

    def leave(done: Done) -> None:
        group = groups.registry.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            named = [(each.member_id, each.instance_id) for each in leaving]
            codes.extend(groups.consumer.leave(group, named, done))
        else:
            codes.extend(groups.classic.leave(request.group_id, leaving))
            groups.classic.when_left(request.group_id, done)

    def answer(error: KafkaError | None) -> messages.LeaveGroupResponse:
        if error is not None:
            return {"error_code": error.code}
        if context.api_version < _MEMBERS_SINCE:
            return {"error_code": codes[0]}
        members: list[messages.MemberResponse] = [
            {"member_id": member.member_id, "group_instance_id": member.instance_id, "error_code": code}
            for member, code in zip(leaving, codes, strict=True)
        ]
        return {"members": members}

    return promise(leave, answer)


def describe_groups(
    context: RequestContext, request: messages.DescribeGroupsRequest
) -> Result[messages.DescribeGroupsResponse]:
    """Return classic groups with their members."""
    return context.run(_describe_all(context, request))


def _describe_all(
    context: RequestContext, request: messages.DescribeGroupsRequest
) -> Steps[messages.DescribeGroupsResponse]:
    groups = yield from describe_each(context, request.groups, partial(_describe, context, request))
    return {"groups": groups}


def _describe(
    context: RequestContext, request: messages.DescribeGroupsRequest, group_id: str, seen: Container[str]
) -> messages.DescribeGroupsDescribedGroup:
    answer: messages.DescribeGroupsDescribedGroup = {"group_id": group_id}
    asked = getattr(request, "include_authorized_operations", False)
    if group_id not in seen:
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return answer | {
            "error_code": code,
            "error_message": None,
            "authorized_operations": NOT_REQUESTED,
        }
    allowed = context.operations(ResourceType.GROUP, group_id) if asked else NOT_REQUESTED
    try:
        group = context.broker.groups.registry.find(group_id, ClassicGroup)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    except KafkaError as error:
        answer["group_state"] = ClassicState.DEAD.value
        if context.api_version >= _NOT_FOUND_SINCE:
            return answer | {"error_code": error.code, "error_message": error.message}
        return answer | {"authorized_operations": allowed}
    stable = group.state is ClassicState.STABLE
    return answer | {
        "authorized_operations": allowed,
        "group_state": group.state_name,
        "protocol_type": group.protocol_type,
        "protocol_data": (group.protocol or "") if stable else "",
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata(group.protocol) if stable else b"",
                "member_assignment": member.assignment,
            }
            for member in group.members.values()
        ],
    }


def list_groups(
    context: RequestContext, request: messages.ListGroupsRequest
) -> Result[messages.ListGroupsResponse]:
    """Return groups of all types, by state and type."""
    return context.run(_list(context, request))


def _list(context: RequestContext, request: messages.ListGroupsRequest) -> Steps[messages.ListGroupsResponse]:
    groups = context.broker.groups.registry.select(request.states_filter or (), request.types_filter or ())
    sees_all = context.may(Operation.DESCRIBE, ResourceType.CLUSTER, quiet=True)
    names = () if sees_all else (group.group_id for group in groups)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, names, quiet=True)
    listed: list[messages.ListedGroup] = []
    for group in groups:
        if sees_all or group.group_id in seen:
            listed.append(
                {
                    "group_id": group.group_id,
                    "protocol_type": group.protocol_type,
                    "group_state": group.state_name,
                    "group_type": group.type.value.lower(),
                }
            )
        yield
    return {"groups": listed}


def delete_groups(
    context: RequestContext, request: messages.DeleteGroupsRequest
) -> Result[messages.DeleteGroupsResponse]:
    """Delete groups of any type that have no members."""
    return context.run(_delete_all(context, request))


def _delete_all(
    context: RequestContext, request: messages.DeleteGroupsRequest
) -> Steps[Begun[messages.DeleteGroupsResponse]]:
    names = dict.fromkeys(request.groups_names)
    deletable = yield from context.may_each(Operation.DELETE, ResourceType.GROUP, names)
    gather: Gather[str] = Gather(names)
    for group_id in names:
        if group_id in deletable:
            gather.run(group_id, _delete, context, group_id)
        else:
            gather.put(group_id, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        yield
    return reply(gather, lambda: _answer(gather.outcomes))


def _delete(context: RequestContext, group_id: str, done: Done) -> None:
    broker = context.broker
    broker.cluster.check_coordinator(group_id)
    group = broker.groups.registry.get(group_id)
    if isinstance(group, ShareGroup):
        broker.share.delete_group(group, done)
    else:
        broker.groups.delete(group_id, done)


def _answer(errors: dict[str, KafkaError | None]) -> messages.DeleteGroupsResponse:
    return {
        "results": [
            {"group_id": group_id, "error_code": ErrorCode.NONE if error is None else error.code}
            for group_id, error in errors.items()
        ]
    }
