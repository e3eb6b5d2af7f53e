"""The APIs that clients call, each with the type of its response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from sharecore.protocol.apis import ApiKey

if TYPE_CHECKING:
    from sharecore.protocol import received

Response_co = TypeVar("Response_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[Response_co]):
    """An API whose response has the type `Response_co`."""

    key: ApiKey


PRODUCE: Call[received.ProduceResponse] = Call(ApiKey.PRODUCE)
FETCH: Call[received.FetchResponse] = Call(ApiKey.FETCH)
LIST_OFFSETS: Call[received.ListOffsetsResponse] = Call(ApiKey.LIST_OFFSETS)
METADATA: Call[received.MetadataResponse] = Call(ApiKey.METADATA)
OFFSET_COMMIT: Call[received.OffsetCommitResponse] = Call(ApiKey.OFFSET_COMMIT)
FIND_COORDINATOR: Call[received.FindCoordinatorResponse] = Call(ApiKey.FIND_COORDINATOR)
JOIN_GROUP: Call[received.JoinGroupResponse] = Call(ApiKey.JOIN_GROUP)
HEARTBEAT: Call[received.HeartbeatResponse] = Call(ApiKey.HEARTBEAT)
LEAVE_GROUP: Call[received.LeaveGroupResponse] = Call(ApiKey.LEAVE_GROUP)
SYNC_GROUP: Call[received.SyncGroupResponse] = Call(ApiKey.SYNC_GROUP)
DESCRIBE_GROUPS: Call[received.DescribeGroupsResponse] = Call(ApiKey.DESCRIBE_GROUPS)
LIST_GROUPS: Call[received.ListGroupsResponse] = Call(ApiKey.LIST_GROUPS)
SASL_HANDSHAKE: Call[received.SaslHandshakeResponse] = Call(ApiKey.SASL_HANDSHAKE)
API_VERSIONS: Call[received.ApiVersionsResponse] = Call(ApiKey.API_VERSIONS)
CREATE_TOPICS: Call[received.CreateTopicsResponse] = Call(ApiKey.CREATE_TOPICS)
DELETE_TOPICS: Call[received.DeleteTopicsResponse] = Call(ApiKey.DELETE_TOPICS)
DELETE_RECORDS: Call[received.DeleteRecordsResponse] = Call(ApiKey.DELETE_RECORDS)
INIT_PRODUCER_ID: Call[received.InitProducerIdResponse] = Call(ApiKey.INIT_PRODUCER_ID)
OFFSET_FOR_LEADER_EPOCH: Call[received.OffsetForLeaderEpochResponse] = Call(ApiKey.OFFSET_FOR_LEADER_EPOCH)
DESCRIBE_ACLS: Call[received.DescribeAclsResponse] = Call(ApiKey.DESCRIBE_ACLS)
CREATE_ACLS: Call[received.CreateAclsResponse] = Call(ApiKey.CREATE_ACLS)
DELETE_ACLS: Call[received.DeleteAclsResponse] = Call(ApiKey.DELETE_ACLS)
DESCRIBE_CONFIGS: Call[received.DescribeConfigsResponse] = Call(ApiKey.DESCRIBE_CONFIGS)
DESCRIBE_LOG_DIRS: Call[received.DescribeLogDirsResponse] = Call(ApiKey.DESCRIBE_LOG_DIRS)
SASL_AUTHENTICATE: Call[received.SaslAuthenticateResponse] = Call(ApiKey.SASL_AUTHENTICATE)
CREATE_PARTITIONS: Call[received.CreatePartitionsResponse] = Call(ApiKey.CREATE_PARTITIONS)
DELETE_GROUPS: Call[received.DeleteGroupsResponse] = Call(ApiKey.DELETE_GROUPS)
INCREMENTAL_ALTER_CONFIGS: Call[received.IncrementalAlterConfigsResponse] = Call(
    ApiKey.INCREMENTAL_ALTER_CONFIGS
)
DESCRIBE_USER_SCRAM_CREDENTIALS: Call[received.DescribeUserScramCredentialsResponse] = Call(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
)
ALTER_USER_SCRAM_CREDENTIALS: Call[received.AlterUserScramCredentialsResponse] = Call(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS
)
CONSUMER_GROUP_HEARTBEAT: Call[received.ConsumerGroupHeartbeatResponse] = Call(
    ApiKey.CONSUMER_GROUP_HEARTBEAT
)
CONSUMER_GROUP_DESCRIBE: Call[received.ConsumerGroupDescribeResponse] = Call(ApiKey.CONSUMER_GROUP_DESCRIBE)
GET_TELEMETRY_SUBSCRIPTIONS: Call[received.GetTelemetrySubscriptionsResponse] = Call(
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
)
PUSH_TELEMETRY: Call[received.PushTelemetryResponse] = Call(ApiKey.PUSH_TELEMETRY)
SHARE_GROUP_HEARTBEAT: Call[received.ShareGroupHeartbeatResponse] = Call(ApiKey.SHARE_GROUP_HEARTBEAT)
SHARE_GROUP_DESCRIBE: Call[received.ShareGroupDescribeResponse] = Call(ApiKey.SHARE_GROUP_DESCRIBE)
SHARE_FETCH: Call[received.ShareFetchResponse] = Call(ApiKey.SHARE_FETCH)
SHARE_ACKNOWLEDGE: Call[received.ShareAcknowledgeResponse] = Call(ApiKey.SHARE_ACKNOWLEDGE)
INITIALIZE_SHARE_GROUP_STATE: Call[received.InitializeShareGroupStateResponse] = Call(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE
)
READ_SHARE_GROUP_STATE: Call[received.ReadShareGroupStateResponse] = Call(ApiKey.READ_SHARE_GROUP_STATE)
WRITE_SHARE_GROUP_STATE: Call[received.WriteShareGroupStateResponse] = Call(ApiKey.WRITE_SHARE_GROUP_STATE)
DELETE_SHARE_GROUP_STATE: Call[received.DeleteShareGroupStateResponse] = Call(ApiKey.DELETE_SHARE_GROUP_STATE)
READ_SHARE_GROUP_STATE_SUMMARY: Call[received.ReadShareGroupStateSummaryResponse] = Call(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
)
DESCRIBE_SHARE_GROUP_OFFSETS: Call[received.DescribeShareGroupOffsetsResponse] = Call(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
)
ALTER_SHARE_GROUP_OFFSETS: Call[received.AlterShareGroupOffsetsResponse] = Call(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS
)
DELETE_SHARE_GROUP_OFFSETS: Call[received.DeleteShareGroupOffsetsResponse] = Call(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS
)
