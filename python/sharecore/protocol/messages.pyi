"""Types of requests and answers, for type checkers only.

Written by `python -m tests.unit.protocol.message_types` from Kafka's schemas. There is no such module at run
time: `layout.py` creates the named tuples of a request when a client first sends it, and answers are plain
dictionaries. A class has the fields of all served versions, those of the newest first.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypedDict
from uuid import UUID

class PartitionProduceData(NamedTuple):
    index: int  # type: ignore[assignment]
    records: bytes | None

class TopicProduceData(NamedTuple):
    topic_id: UUID | None
    partition_data: Sequence[PartitionProduceData]
    name: str

class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: Sequence[TopicProduceData]

class BatchIndexAndErrorMessage(TypedDict, total=False):
    batch_index: int
    batch_index_error_message: str | None

class ProduceLeaderIdAndEpoch(TypedDict, total=False):
    leader_id: int
    leader_epoch: int

class PartitionProduceResponse(TypedDict, total=False):
    index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: Collection[BatchIndexAndErrorMessage]
    error_message: str | None
    current_leader: ProduceLeaderIdAndEpoch

class TopicProduceResponse(TypedDict, total=False):
    topic_id: UUID | None
    partition_responses: Collection[PartitionProduceResponse]
    name: str

class ProduceNodeEndpoint(TypedDict, total=False):
    node_id: int
    host: str
    port: int
    rack: str | None

class ProduceResponse(TypedDict, total=False):
    responses: Collection[TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: Collection[ProduceNodeEndpoint]

class FetchReplicaState(NamedTuple):
    replica_id: int
    replica_epoch: int

class FetchRequestFetchPartition(NamedTuple):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: UUID | None
    high_watermark: int

class FetchRequestFetchTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[FetchRequestFetchPartition]
    topic: str

class FetchForgottenTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[int]
    topic: str

class FetchRequest(NamedTuple):
    cluster_id: str | None
    replica_state: FetchReplicaState | None
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: Sequence[FetchRequestFetchTopic]
    forgotten_topics_data: Sequence[FetchForgottenTopic]
    rack_id: str
    replica_id: int

class FetchEpochEndOffset(TypedDict, total=False):
    epoch: int
    end_offset: int

class FetchLeaderIdAndEpoch(TypedDict, total=False):
    leader_id: int
    leader_epoch: int

class SnapshotId(TypedDict, total=False):
    end_offset: int
    epoch: int

class AbortedTransaction(TypedDict, total=False):
    producer_id: int
    first_offset: int

class FetchPartitionData(TypedDict, total=False):
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: FetchEpochEndOffset
    current_leader: FetchLeaderIdAndEpoch
    snapshot_id: SnapshotId
    aborted_transactions: Collection[AbortedTransaction] | None
    preferred_read_replica: int
    records: bytes | None

class FetchableTopicResponse(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[FetchPartitionData]
    topic: str

class FetchNodeEndpoint(TypedDict, total=False):
    node_id: int
    host: str
    port: int
    rack: str | None

class FetchResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: Collection[FetchableTopicResponse]
    node_endpoints: Collection[FetchNodeEndpoint]

class ListOffsetsPartition(NamedTuple):
    partition_index: int
    current_leader_epoch: int
    timestamp: int

class ListOffsetsTopic(NamedTuple):
    name: str
    partitions: Sequence[ListOffsetsPartition]

class ListOffsetsRequest(NamedTuple):
    replica_id: int
    isolation_level: int
    topics: Sequence[ListOffsetsTopic]
    timeout_ms: int

class ListOffsetsPartitionResponse(TypedDict, total=False):
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int

class ListOffsetsTopicResponse(TypedDict, total=False):
    name: str
    partitions: Collection[ListOffsetsPartitionResponse]

class ListOffsetsResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[ListOffsetsTopicResponse]

class MetadataRequestTopic(NamedTuple):
    topic_id: UUID | None
    name: str | None

class MetadataRequest(NamedTuple):
    topics: Sequence[MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_topic_authorized_operations: bool
    include_cluster_authorized_operations: bool

class MetadataResponseBroker(TypedDict, total=False):
    node_id: int
    host: str
    port: int
    rack: str | None

class MetadataResponsePartition(TypedDict, total=False):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Collection[int]
    isr_nodes: Collection[int]
    offline_replicas: Collection[int]

class MetadataResponseTopic(TypedDict, total=False):
    error_code: int
    name: str | None
    topic_id: UUID | None
    is_internal: bool
    partitions: Collection[MetadataResponsePartition]
    topic_authorized_operations: int

class MetadataResponse(TypedDict, total=False):
    throttle_time_ms: int
    brokers: Collection[MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: Collection[MetadataResponseTopic]
    error_code: int
    cluster_authorized_operations: int

class OffsetCommitRequestPartition(NamedTuple):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None

class OffsetCommitRequestTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[OffsetCommitRequestPartition]
    name: str

class OffsetCommitRequest(NamedTuple):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: Sequence[OffsetCommitRequestTopic]
    retention_time_ms: int

class OffsetCommitResponsePartition(TypedDict, total=False):
    partition_index: int
    error_code: int

class OffsetCommitResponseTopic(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[OffsetCommitResponsePartition]
    name: str

class OffsetCommitResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[OffsetCommitResponseTopic]

class OffsetFetchRequestTopics(NamedTuple):
    topic_id: UUID | None
    partition_indexes: Sequence[int]
    name: str

class OffsetFetchRequestGroup(NamedTuple):
    group_id: str
    member_id: str | None
    member_epoch: int
    topics: Sequence[OffsetFetchRequestTopics] | None

class OffsetFetchRequestTopic(NamedTuple):
    name: str
    partition_indexes: Sequence[int]

class OffsetFetchRequest(NamedTuple):
    groups: Sequence[OffsetFetchRequestGroup]
    require_stable: bool
    group_id: str
    topics: Sequence[OffsetFetchRequestTopic] | None

class OffsetFetchResponsePartitions(TypedDict, total=False):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

class OffsetFetchResponseTopics(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[OffsetFetchResponsePartitions]
    name: str

class OffsetFetchResponseGroup(TypedDict, total=False):
    group_id: str
    topics: Collection[OffsetFetchResponseTopics]
    error_code: int

class OffsetFetchResponsePartition(TypedDict, total=False):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

class OffsetFetchResponseTopic(TypedDict, total=False):
    name: str
    partitions: Collection[OffsetFetchResponsePartition]

class OffsetFetchResponse(TypedDict, total=False):
    throttle_time_ms: int
    groups: Collection[OffsetFetchResponseGroup]
    topics: Collection[OffsetFetchResponseTopic]
    error_code: int

class FindCoordinatorRequest(NamedTuple):
    key_type: int
    coordinator_keys: Sequence[str]
    key: str

class Coordinator(TypedDict, total=False):
    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str | None

class FindCoordinatorResponse(TypedDict, total=False):
    throttle_time_ms: int
    coordinators: Collection[Coordinator]
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int

class JoinGroupRequestProtocol(NamedTuple):
    name: str
    metadata: bytes

class JoinGroupRequest(NamedTuple):
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: Sequence[JoinGroupRequestProtocol]
    reason: str | None

class JoinGroupResponseMember(TypedDict, total=False):
    member_id: str
    group_instance_id: str | None
    metadata: bytes

class JoinGroupResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: Collection[JoinGroupResponseMember]

class HeartbeatRequest(NamedTuple):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None

class HeartbeatResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int

class MemberIdentity(NamedTuple):
    member_id: str
    group_instance_id: str | None
    reason: str | None

class LeaveGroupRequest(NamedTuple):
    group_id: str
    members: Sequence[MemberIdentity]
    member_id: str

class MemberResponse(TypedDict, total=False):
    member_id: str
    group_instance_id: str | None
    error_code: int

class LeaveGroupResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    members: Collection[MemberResponse]

class SyncGroupRequestAssignment(NamedTuple):
    member_id: str
    assignment: bytes

class SyncGroupRequest(NamedTuple):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: Sequence[SyncGroupRequestAssignment]

class SyncGroupResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes

class DescribeGroupsRequest(NamedTuple):
    groups: Sequence[str]
    include_authorized_operations: bool

class DescribedGroupMember(TypedDict, total=False):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes

class DescribeGroupsDescribedGroup(TypedDict, total=False):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: Collection[DescribedGroupMember]
    authorized_operations: int

class DescribeGroupsResponse(TypedDict, total=False):
    throttle_time_ms: int
    groups: Collection[DescribeGroupsDescribedGroup]

class SaslHandshakeRequest(NamedTuple):
    mechanism: str

class SaslHandshakeResponse(TypedDict, total=False):
    error_code: int
    mechanisms: Collection[str]

class ApiVersionsRequest(NamedTuple):
    client_software_name: str
    client_software_version: str
    cluster_id: str | None
    node_id: int

class ApiVersion(TypedDict, total=False):
    api_key: int
    min_version: int
    max_version: int

class SupportedFeatureKey(TypedDict, total=False):
    name: str
    min_version: int
    max_version: int

class FinalizedFeatureKey(TypedDict, total=False):
    name: str
    max_version_level: int
    min_version_level: int

class ApiVersionsResponse(TypedDict, total=False):
    error_code: int
    api_keys: Collection[ApiVersion]
    throttle_time_ms: int
    supported_features: Collection[SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: Collection[FinalizedFeatureKey]
    zk_migration_ready: bool

class CreatableReplicaAssignment(NamedTuple):
    partition_index: int
    broker_ids: Sequence[int]

class CreatableTopicConfig(NamedTuple):
    name: str
    value: str | None

class CreatableTopic(NamedTuple):
    name: str
    num_partitions: int
    replication_factor: int
    assignments: Sequence[CreatableReplicaAssignment]
    configs: Sequence[CreatableTopicConfig]

class CreateTopicsRequest(NamedTuple):
    topics: Sequence[CreatableTopic]
    timeout_ms: int
    validate_only: bool

class CreatableTopicConfigs(TypedDict, total=False):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool

class CreatableTopicResult(TypedDict, total=False):
    name: str
    topic_id: UUID | None
    error_code: int
    error_message: str | None
    topic_config_error_code: int
    num_partitions: int
    replication_factor: int
    configs: Collection[CreatableTopicConfigs] | None

class CreateTopicsResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[CreatableTopicResult]

class DeleteTopicState(NamedTuple):
    name: str | None
    topic_id: UUID | None

class DeleteTopicsRequest(NamedTuple):
    topics: Sequence[DeleteTopicState]
    timeout_ms: int
    topic_names: Sequence[str]

class DeletableTopicResult(TypedDict, total=False):
    name: str | None
    topic_id: UUID | None
    error_code: int
    error_message: str | None

class DeleteTopicsResponse(TypedDict, total=False):
    throttle_time_ms: int
    responses: Collection[DeletableTopicResult]

class DeleteRecordsPartition(NamedTuple):
    partition_index: int
    offset: int

class DeleteRecordsTopic(NamedTuple):
    name: str
    partitions: Sequence[DeleteRecordsPartition]

class DeleteRecordsRequest(NamedTuple):
    topics: Sequence[DeleteRecordsTopic]
    timeout_ms: int

class DeleteRecordsPartitionResult(TypedDict, total=False):
    partition_index: int
    low_watermark: int
    error_code: int

class DeleteRecordsTopicResult(TypedDict, total=False):
    name: str
    partitions: Collection[DeleteRecordsPartitionResult]

class DeleteRecordsResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[DeleteRecordsTopicResult]

class InitProducerIdRequest(NamedTuple):
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int

class InitProducerIdResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int

class OffsetForLeaderPartition(NamedTuple):
    partition: int
    current_leader_epoch: int
    leader_epoch: int

class OffsetForLeaderTopic(NamedTuple):
    topic: str
    partitions: Sequence[OffsetForLeaderPartition]

class OffsetForLeaderEpochRequest(NamedTuple):
    replica_id: int
    topics: Sequence[OffsetForLeaderTopic]

class OffsetForLeaderEpochEpochEndOffset(TypedDict, total=False):
    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int

class OffsetForLeaderTopicResult(TypedDict, total=False):
    topic: str
    partitions: Collection[OffsetForLeaderEpochEpochEndOffset]

class OffsetForLeaderEpochResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[OffsetForLeaderTopicResult]

class AddPartitionsToTxnTopic(NamedTuple):
    name: str
    partitions: Sequence[int]

class AddPartitionsToTxnRequest(NamedTuple):
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic]

class AddPartitionsToTxnPartitionResult(TypedDict, total=False):
    partition_index: int
    partition_error_code: int

class AddPartitionsToTxnTopicResult(TypedDict, total=False):
    name: str
    results_by_partition: Collection[AddPartitionsToTxnPartitionResult]

class AddPartitionsToTxnResponse(TypedDict, total=False):
    throttle_time_ms: int
    results_by_topic_v3_and_below: Collection[AddPartitionsToTxnTopicResult]

class AddOffsetsToTxnRequest(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str

class AddOffsetsToTxnResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int

class EndTxnRequest(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool

class EndTxnResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int

class TxnOffsetCommitRequestPartition(NamedTuple):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None

class TxnOffsetCommitRequestTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[TxnOffsetCommitRequestPartition]
    name: str

class TxnOffsetCommitRequest(NamedTuple):
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topics: Sequence[TxnOffsetCommitRequestTopic]

class TxnOffsetCommitResponsePartition(TypedDict, total=False):
    partition_index: int
    error_code: int

class TxnOffsetCommitResponseTopic(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[TxnOffsetCommitResponsePartition]
    name: str

class TxnOffsetCommitResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[TxnOffsetCommitResponseTopic]

class DescribeAclsRequest(NamedTuple):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int

class AclDescription(TypedDict, total=False):
    principal: str
    host: str
    operation: int
    permission_type: int

class DescribeAclsResource(TypedDict, total=False):
    resource_type: int
    resource_name: str
    pattern_type: int
    acls: Collection[AclDescription]

class DescribeAclsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: Collection[DescribeAclsResource]

class AclCreation(NamedTuple):
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

class CreateAclsRequest(NamedTuple):
    creations: Sequence[AclCreation]

class AclCreationResult(TypedDict, total=False):
    error_code: int
    error_message: str | None

class CreateAclsResponse(TypedDict, total=False):
    throttle_time_ms: int
    results: Collection[AclCreationResult]

class DeleteAclsFilter(NamedTuple):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int

class DeleteAclsRequest(NamedTuple):
    filters: Sequence[DeleteAclsFilter]

class DeleteAclsMatchingAcl(TypedDict, total=False):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

class DeleteAclsFilterResult(TypedDict, total=False):
    error_code: int
    error_message: str | None
    matching_acls: Collection[DeleteAclsMatchingAcl]

class DeleteAclsResponse(TypedDict, total=False):
    throttle_time_ms: int
    filter_results: Collection[DeleteAclsFilterResult]

class DescribeConfigsResource(NamedTuple):
    resource_type: int
    resource_name: str
    configuration_keys: Sequence[str] | None

class DescribeConfigsRequest(NamedTuple):
    resources: Sequence[DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool

class DescribeConfigsSynonym(TypedDict, total=False):
    name: str
    value: str | None
    source: int

class DescribeConfigsResourceResult(TypedDict, total=False):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    synonyms: Collection[DescribeConfigsSynonym]
    config_type: int
    documentation: str | None

class DescribeConfigsResult(TypedDict, total=False):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: Collection[DescribeConfigsResourceResult]

class DescribeConfigsResponse(TypedDict, total=False):
    throttle_time_ms: int
    results: Collection[DescribeConfigsResult]

class AlterConfigsAlterableConfig(NamedTuple):
    name: str
    value: str | None

class AlterConfigsRequestAlterConfigsResource(NamedTuple):
    resource_type: int
    resource_name: str
    configs: Sequence[AlterConfigsAlterableConfig]

class AlterConfigsRequest(NamedTuple):
    resources: Sequence[AlterConfigsRequestAlterConfigsResource]
    validate_only: bool

class AlterConfigsResponseAlterConfigsResourceResponse(TypedDict, total=False):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str

class AlterConfigsResponse(TypedDict, total=False):
    throttle_time_ms: int
    responses: Collection[AlterConfigsResponseAlterConfigsResourceResponse]

class DescribableLogDirTopic(NamedTuple):
    topic: str
    partitions: Sequence[int]

class DescribeLogDirsRequest(NamedTuple):
    topics: Sequence[DescribableLogDirTopic] | None

class DescribeLogDirsPartition(TypedDict, total=False):
    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool

class DescribeLogDirsTopic(TypedDict, total=False):
    name: str
    partitions: Collection[DescribeLogDirsPartition]

class DescribeLogDirsResult(TypedDict, total=False):
    error_code: int
    log_dir: str
    topics: Collection[DescribeLogDirsTopic]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool

class DescribeLogDirsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    results: Collection[DescribeLogDirsResult]

class SaslAuthenticateRequest(NamedTuple):
    auth_bytes: bytes

class SaslAuthenticateResponse(TypedDict, total=False):
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int

class CreatePartitionsAssignment(NamedTuple):
    broker_ids: Sequence[int]

class CreatePartitionsTopic(NamedTuple):
    name: str
    count: int  # type: ignore[assignment]
    assignments: Sequence[CreatePartitionsAssignment] | None

class CreatePartitionsRequest(NamedTuple):
    topics: Sequence[CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool

class CreatePartitionsTopicResult(TypedDict, total=False):
    name: str
    error_code: int
    error_message: str | None

class CreatePartitionsResponse(TypedDict, total=False):
    throttle_time_ms: int
    results: Collection[CreatePartitionsTopicResult]

class ElectLeadersTopicPartitions(NamedTuple):
    topic: str
    partitions: Sequence[int]

class ElectLeadersRequest(NamedTuple):
    election_type: int
    topic_partitions: Sequence[ElectLeadersTopicPartitions] | None
    timeout_ms: int

class ElectLeadersPartitionResult(TypedDict, total=False):
    partition_id: int
    error_code: int
    error_message: str | None

class ReplicaElectionResult(TypedDict, total=False):
    topic: str
    partition_result: Collection[ElectLeadersPartitionResult]

class ElectLeadersResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    replica_election_results: Collection[ReplicaElectionResult]

class IncrementalAlterConfigsAlterableConfig(NamedTuple):
    name: str
    config_operation: int
    value: str | None

class IncrementalAlterConfigsAlterConfigsResource(NamedTuple):
    resource_type: int
    resource_name: str
    configs: Sequence[IncrementalAlterConfigsAlterableConfig]

class IncrementalAlterConfigsRequest(NamedTuple):
    resources: Sequence[IncrementalAlterConfigsAlterConfigsResource]
    validate_only: bool

class IncrementalAlterConfigsAlterConfigsResourceResponse(TypedDict, total=False):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str

class IncrementalAlterConfigsResponse(TypedDict, total=False):
    throttle_time_ms: int
    responses: Collection[IncrementalAlterConfigsAlterConfigsResourceResponse]

class ReassignablePartition(NamedTuple):
    partition_index: int
    replicas: Sequence[int] | None

class ReassignableTopic(NamedTuple):
    name: str
    partitions: Sequence[ReassignablePartition]

class AlterPartitionReassignmentsRequest(NamedTuple):
    timeout_ms: int
    allow_replication_factor_change: bool
    topics: Sequence[ReassignableTopic]

class ReassignablePartitionResponse(TypedDict, total=False):
    partition_index: int
    error_code: int
    error_message: str | None

class ReassignableTopicResponse(TypedDict, total=False):
    name: str
    partitions: Collection[ReassignablePartitionResponse]

class AlterPartitionReassignmentsResponse(TypedDict, total=False):
    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: Collection[ReassignableTopicResponse]

class ListPartitionReassignmentsTopics(NamedTuple):
    name: str
    partition_indexes: Sequence[int]

class ListPartitionReassignmentsRequest(NamedTuple):
    timeout_ms: int
    topics: Sequence[ListPartitionReassignmentsTopics] | None

class OngoingPartitionReassignment(TypedDict, total=False):
    partition_index: int
    replicas: Collection[int]
    adding_replicas: Collection[int]
    removing_replicas: Collection[int]

class OngoingTopicReassignment(TypedDict, total=False):
    name: str
    partitions: Collection[OngoingPartitionReassignment]

class ListPartitionReassignmentsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: Collection[OngoingTopicReassignment]

class DescribeQuorumRequestPartitionData(NamedTuple):
    partition_index: int

class DescribeQuorumRequestTopicData(NamedTuple):
    topic_name: str
    partitions: Sequence[DescribeQuorumRequestPartitionData]

class DescribeQuorumRequest(NamedTuple):
    topics: Sequence[DescribeQuorumRequestTopicData]

class DescribeQuorumReplicaState(TypedDict, total=False):
    replica_id: int
    replica_directory_id: UUID | None
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int

class DescribeQuorumResponsePartitionData(TypedDict, total=False):
    partition_index: int
    error_code: int
    error_message: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: Collection[DescribeQuorumReplicaState]
    observers: Collection[DescribeQuorumReplicaState]

class DescribeQuorumResponseTopicData(TypedDict, total=False):
    topic_name: str
    partitions: Collection[DescribeQuorumResponsePartitionData]

class Listener(TypedDict, total=False):
    name: str
    host: str
    port: int

class Node(TypedDict, total=False):
    node_id: int
    listeners: Collection[Listener]

class DescribeQuorumResponse(TypedDict, total=False):
    error_code: int
    error_message: str | None
    topics: Collection[DescribeQuorumResponseTopicData]
    nodes: Collection[Node]

class OffsetDeleteRequestPartition(NamedTuple):
    partition_index: int

class OffsetDeleteRequestTopic(NamedTuple):
    name: str
    partitions: Sequence[OffsetDeleteRequestPartition]

class OffsetDeleteRequest(NamedTuple):
    group_id: str
    topics: Sequence[OffsetDeleteRequestTopic]

class OffsetDeleteResponsePartition(TypedDict, total=False):
    partition_index: int
    error_code: int

class OffsetDeleteResponseTopic(TypedDict, total=False):
    name: str
    partitions: Collection[OffsetDeleteResponsePartition]

class OffsetDeleteResponse(TypedDict, total=False):
    error_code: int
    throttle_time_ms: int
    topics: Collection[OffsetDeleteResponseTopic]

class UserName(NamedTuple):
    name: str

class DescribeUserScramCredentialsRequest(NamedTuple):
    users: Sequence[UserName] | None

class CredentialInfo(TypedDict, total=False):
    mechanism: int
    iterations: int

class DescribeUserScramCredentialsResult(TypedDict, total=False):
    user: str
    error_code: int
    error_message: str | None
    credential_infos: Collection[CredentialInfo]

class DescribeUserScramCredentialsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: Collection[DescribeUserScramCredentialsResult]

class ScramCredentialDeletion(NamedTuple):
    name: str
    mechanism: int

class ScramCredentialUpsertion(NamedTuple):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

class AlterUserScramCredentialsRequest(NamedTuple):
    deletions: Sequence[ScramCredentialDeletion]
    upsertions: Sequence[ScramCredentialUpsertion]

class AlterUserScramCredentialsResult(TypedDict, total=False):
    user: str
    error_code: int
    error_message: str | None

class AlterUserScramCredentialsResponse(TypedDict, total=False):
    throttle_time_ms: int
    results: Collection[AlterUserScramCredentialsResult]

class ComponentData(NamedTuple):
    entity_type: str
    match_type: int
    match: str | None

class DescribeClientQuotasRequest(NamedTuple):
    components: Sequence[ComponentData]
    strict: bool

class DescribeClientQuotasEntityData(TypedDict, total=False):
    entity_type: str
    entity_name: str | None

class ValueData(TypedDict, total=False):
    key: str
    value: float

class DescribeClientQuotasEntryData(TypedDict, total=False):
    entity: Collection[DescribeClientQuotasEntityData]
    values: Collection[ValueData]

class DescribeClientQuotasResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: Collection[DescribeClientQuotasEntryData] | None

class AlterClientQuotasRequestEntityData(NamedTuple):
    entity_type: str
    entity_name: str | None

class OpData(NamedTuple):
    key: str
    value: float
    remove: bool

class AlterClientQuotasRequestEntryData(NamedTuple):
    entity: Sequence[AlterClientQuotasRequestEntityData]
    ops: Sequence[OpData]

class AlterClientQuotasRequest(NamedTuple):
    entries: Sequence[AlterClientQuotasRequestEntryData]
    validate_only: bool

class AlterClientQuotasResponseEntityData(TypedDict, total=False):
    entity_type: str
    entity_name: str | None

class AlterClientQuotasResponseEntryData(TypedDict, total=False):
    error_code: int
    error_message: str | None
    entity: Collection[AlterClientQuotasResponseEntityData]

class AlterClientQuotasResponse(TypedDict, total=False):
    throttle_time_ms: int
    entries: Collection[AlterClientQuotasResponseEntryData]

class FeatureUpdateKey(NamedTuple):
    feature: str
    max_version_level: int
    upgrade_type: int
    allow_downgrade: bool

class UpdateFeaturesRequest(NamedTuple):
    timeout_ms: int
    feature_updates: Sequence[FeatureUpdateKey]
    validate_only: bool

class UpdatableFeatureResult(TypedDict, total=False):
    feature: str
    error_code: int
    error_message: str | None

class UpdateFeaturesResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: Collection[UpdatableFeatureResult]

class DescribeClusterRequest(NamedTuple):
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool

class DescribeClusterBroker(TypedDict, total=False):
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool

class DescribeClusterResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: Collection[DescribeClusterBroker]
    cluster_authorized_operations: int

class DescribeProducersTopicRequest(NamedTuple):
    name: str
    partition_indexes: Sequence[int]

class DescribeProducersRequest(NamedTuple):
    topics: Sequence[DescribeProducersTopicRequest]

class ProducerState(TypedDict, total=False):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int

class PartitionResponse(TypedDict, total=False):
    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: Collection[ProducerState]

class TopicResponse(TypedDict, total=False):
    name: str
    partitions: Collection[PartitionResponse]

class DescribeProducersResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[TopicResponse]

class DescribeTransactionsRequest(NamedTuple):
    transactional_ids: Sequence[str]

class DescribeTransactionsTopicData(TypedDict, total=False):
    topic: str
    partitions: Collection[int]

class DescribeTransactionsTransactionState(TypedDict, total=False):
    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    producer_id: int
    producer_epoch: int
    topics: Collection[DescribeTransactionsTopicData]

class DescribeTransactionsResponse(TypedDict, total=False):
    throttle_time_ms: int
    transaction_states: Collection[DescribeTransactionsTransactionState]

class ListTransactionsRequest(NamedTuple):
    state_filters: Sequence[str]
    producer_id_filters: Sequence[int]
    duration_filter: int
    transactional_id_pattern: str | None

class ListTransactionsTransactionState(TypedDict, total=False):
    transactional_id: str
    producer_id: int
    transaction_state: str

class ListTransactionsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: Collection[str]
    transaction_states: Collection[ListTransactionsTransactionState]

class ConsumerGroupHeartbeatRequestTopicPartitions(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[int]

class ConsumerGroupHeartbeatRequest(NamedTuple):
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: Sequence[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: Sequence[ConsumerGroupHeartbeatRequestTopicPartitions] | None

class ConsumerGroupHeartbeatResponseTopicPartitions(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[int]

class ConsumerGroupHeartbeatAssignment(TypedDict, total=False):
    topic_partitions: Collection[ConsumerGroupHeartbeatResponseTopicPartitions]

class ConsumerGroupHeartbeatResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatAssignment | None

class ConsumerGroupDescribeRequest(NamedTuple):
    group_ids: Sequence[str]
    include_authorized_operations: bool

class ConsumerGroupDescribeTopicPartitions(TypedDict, total=False):
    topic_id: UUID | None
    topic_name: str
    partitions: Collection[int]

class ConsumerGroupDescribeAssignment(TypedDict, total=False):
    topic_partitions: Collection[ConsumerGroupDescribeTopicPartitions]

class ConsumerGroupDescribeMember(TypedDict, total=False):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Collection[str]
    subscribed_topic_regex: str | None
    assignment: ConsumerGroupDescribeAssignment
    target_assignment: ConsumerGroupDescribeAssignment
    member_type: int

class ConsumerGroupDescribeDescribedGroup(TypedDict, total=False):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: Collection[ConsumerGroupDescribeMember]
    authorized_operations: int

class ConsumerGroupDescribeResponse(TypedDict, total=False):
    throttle_time_ms: int
    groups: Collection[ConsumerGroupDescribeDescribedGroup]

class ListConfigResourcesRequest(NamedTuple):
    resource_types: bytes

class ConfigResource(TypedDict, total=False):
    resource_name: str
    resource_type: int

class ListConfigResourcesResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    config_resources: Collection[ConfigResource]

class DescribeTopicPartitionsTopicRequest(NamedTuple):
    name: str

class DescribeTopicPartitionsRequestCursor(NamedTuple):
    topic_name: str
    partition_index: int

class DescribeTopicPartitionsRequest(NamedTuple):
    topics: Sequence[DescribeTopicPartitionsTopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsRequestCursor | None

class DescribeTopicPartitionsResponsePartition(TypedDict, total=False):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Collection[int]
    isr_nodes: Collection[int]
    eligible_leader_replicas: Collection[int] | None
    last_known_elr: Collection[int] | None
    offline_replicas: Collection[int]

class DescribeTopicPartitionsResponseTopic(TypedDict, total=False):
    error_code: int
    name: str | None
    topic_id: UUID | None
    is_internal: bool
    partitions: Collection[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int

class DescribeTopicPartitionsResponseCursor(TypedDict, total=False):
    topic_name: str
    partition_index: int

class DescribeTopicPartitionsResponse(TypedDict, total=False):
    throttle_time_ms: int
    topics: Collection[DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponseCursor | None

class ListGroupsRequest(NamedTuple):
    states_filter: Sequence[str]
    types_filter: Sequence[str]

class ListedGroup(TypedDict, total=False):
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str

class ListGroupsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    groups: Collection[ListedGroup]

class DeleteGroupsRequest(NamedTuple):
    groups_names: Sequence[str]

class DeletableGroupResult(TypedDict, total=False):
    group_id: str
    error_code: int
    error_message: str | None

class DeleteGroupsResponse(TypedDict, total=False):
    throttle_time_ms: int
    results: Collection[DeletableGroupResult]

class ShareGroupHeartbeatRequest(NamedTuple):
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: Sequence[str] | None

class ShareGroupHeartbeatTopicPartitions(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[int]

class ShareGroupHeartbeatAssignment(TypedDict, total=False):
    topic_partitions: Collection[ShareGroupHeartbeatTopicPartitions]

class ShareGroupHeartbeatResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatAssignment | None

class ShareGroupDescribeRequest(NamedTuple):
    group_ids: Sequence[str]
    include_authorized_operations: bool

class ShareGroupDescribeTopicPartitions(TypedDict, total=False):
    topic_id: UUID | None
    topic_name: str
    partitions: Collection[int]

class ShareGroupDescribeAssignment(TypedDict, total=False):
    topic_partitions: Collection[ShareGroupDescribeTopicPartitions]

class ShareGroupDescribeMember(TypedDict, total=False):
    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Collection[str]
    assignment: ShareGroupDescribeAssignment

class ShareGroupDescribeDescribedGroup(TypedDict, total=False):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: Collection[ShareGroupDescribeMember]
    authorized_operations: int

class ShareGroupDescribeResponse(TypedDict, total=False):
    throttle_time_ms: int
    groups: Collection[ShareGroupDescribeDescribedGroup]

class ShareFetchAcknowledgementBatch(NamedTuple):
    first_offset: int
    last_offset: int
    acknowledge_types: bytes

class ShareFetchFetchPartition(NamedTuple):
    partition_index: int
    acknowledgement_batches: Sequence[tuple[int, int, bytes]]

class ShareFetchFetchTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[ShareFetchFetchPartition]

class ShareFetchForgottenTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[int]

class ShareFetchRequest(NamedTuple):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: Sequence[ShareFetchFetchTopic]
    forgotten_topics_data: Sequence[ShareFetchForgottenTopic]

class ShareFetchLeaderIdAndEpoch(TypedDict, total=False):
    leader_id: int
    leader_epoch: int

class AcquiredRecords(TypedDict, total=False):
    first_offset: int
    last_offset: int
    delivery_count: int

class ShareFetchPartitionData(TypedDict, total=False):
    partition_index: int
    error_code: int
    error_message: str | None
    acknowledge_error_code: int
    acknowledge_error_message: str | None
    current_leader: ShareFetchLeaderIdAndEpoch
    records: bytes
    acquired_records: Collection[AcquiredRecords]

class ShareFetchableTopicResponse(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[ShareFetchPartitionData]

class ShareFetchNodeEndpoint(TypedDict, total=False):
    node_id: int
    host: str
    port: int
    rack: str | None

class ShareFetchResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: Collection[ShareFetchableTopicResponse]
    node_endpoints: Collection[ShareFetchNodeEndpoint]

class ShareAcknowledgeAcknowledgementBatch(NamedTuple):
    first_offset: int
    last_offset: int
    acknowledge_types: bytes

class AcknowledgePartition(NamedTuple):
    partition_index: int
    acknowledgement_batches: Sequence[tuple[int, int, bytes]]

class AcknowledgeTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[AcknowledgePartition]

class ShareAcknowledgeRequest(NamedTuple):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: Sequence[AcknowledgeTopic]

class ShareAcknowledgeLeaderIdAndEpoch(TypedDict, total=False):
    leader_id: int
    leader_epoch: int

class ShareAcknowledgePartitionData(TypedDict, total=False):
    partition_index: int
    error_code: int
    error_message: str | None
    current_leader: ShareAcknowledgeLeaderIdAndEpoch

class ShareAcknowledgeTopicResponse(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[ShareAcknowledgePartitionData]

class ShareAcknowledgeNodeEndpoint(TypedDict, total=False):
    node_id: int
    host: str
    port: int
    rack: str | None

class ShareAcknowledgeResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: Collection[ShareAcknowledgeTopicResponse]
    node_endpoints: Collection[ShareAcknowledgeNodeEndpoint]

class InitializeShareGroupStatePartitionData(NamedTuple):
    partition: int
    state_epoch: int
    start_offset: int

class InitializeStateData(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[InitializeShareGroupStatePartitionData]

class InitializeShareGroupStateRequest(NamedTuple):
    group_id: str
    topics: Sequence[InitializeStateData]
    coordinator_epoch: int

class InitializeShareGroupStatePartitionResult(TypedDict, total=False):
    partition: int
    error_code: int
    error_message: str | None

class InitializeStateResult(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[InitializeShareGroupStatePartitionResult]

class InitializeShareGroupStateResponse(TypedDict, total=False):
    results: Collection[InitializeStateResult]

class ReadShareGroupStatePartitionData(NamedTuple):
    partition: int
    leader_epoch: int

class ReadStateData(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[ReadShareGroupStatePartitionData]

class ReadShareGroupStateRequest(NamedTuple):
    group_id: str
    topics: Sequence[ReadStateData]

class ReadShareGroupStateStateBatch(TypedDict, total=False):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

class ReadShareGroupStatePartitionResult(TypedDict, total=False):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    start_offset: int
    state_batches: Collection[ReadShareGroupStateStateBatch]

class ReadStateResult(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[ReadShareGroupStatePartitionResult]

class ReadShareGroupStateResponse(TypedDict, total=False):
    results: Collection[ReadStateResult]

class WriteShareGroupStateStateBatch(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

class WriteShareGroupStatePartitionData(NamedTuple):
    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[WriteShareGroupStateStateBatch]

class WriteStateData(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[WriteShareGroupStatePartitionData]

class WriteShareGroupStateRequest(NamedTuple):
    group_id: str
    topics: Sequence[WriteStateData]

class WriteShareGroupStatePartitionResult(TypedDict, total=False):
    partition: int
    error_code: int
    error_message: str | None

class WriteStateResult(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[WriteShareGroupStatePartitionResult]

class WriteShareGroupStateResponse(TypedDict, total=False):
    results: Collection[WriteStateResult]

class DeleteShareGroupStatePartitionData(NamedTuple):
    partition: int

class DeleteStateData(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[DeleteShareGroupStatePartitionData]

class DeleteShareGroupStateRequest(NamedTuple):
    group_id: str
    topics: Sequence[DeleteStateData]
    coordinator_epoch: int

class DeleteShareGroupStatePartitionResult(TypedDict, total=False):
    partition: int
    error_code: int
    error_message: str | None

class DeleteStateResult(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[DeleteShareGroupStatePartitionResult]

class DeleteShareGroupStateResponse(TypedDict, total=False):
    results: Collection[DeleteStateResult]

class ReadShareGroupStateSummaryPartitionData(NamedTuple):
    partition: int
    leader_epoch: int

class ReadStateSummaryData(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[ReadShareGroupStateSummaryPartitionData]

class ReadShareGroupStateSummaryRequest(NamedTuple):
    group_id: str
    topics: Sequence[ReadStateSummaryData]

class ReadShareGroupStateSummaryPartitionResult(TypedDict, total=False):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int

class ReadStateSummaryResult(TypedDict, total=False):
    topic_id: UUID | None
    partitions: Collection[ReadShareGroupStateSummaryPartitionResult]

class ReadShareGroupStateSummaryResponse(TypedDict, total=False):
    results: Collection[ReadStateSummaryResult]

class DescribeShareGroupOffsetsRequestTopic(NamedTuple):
    topic_name: str
    partitions: Sequence[int]

class DescribeShareGroupOffsetsRequestGroup(NamedTuple):
    group_id: str
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None

class DescribeShareGroupOffsetsRequest(NamedTuple):
    groups: Sequence[DescribeShareGroupOffsetsRequestGroup]

class DescribeShareGroupOffsetsResponsePartition(TypedDict, total=False):
    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: int
    error_code: int
    error_message: str | None

class DescribeShareGroupOffsetsResponseTopic(TypedDict, total=False):
    topic_name: str
    topic_id: UUID | None
    partitions: Collection[DescribeShareGroupOffsetsResponsePartition]

class DescribeShareGroupOffsetsResponseGroup(TypedDict, total=False):
    group_id: str
    topics: Collection[DescribeShareGroupOffsetsResponseTopic]
    error_code: int
    error_message: str | None

class DescribeShareGroupOffsetsResponse(TypedDict, total=False):
    throttle_time_ms: int
    groups: Collection[DescribeShareGroupOffsetsResponseGroup]

class AlterShareGroupOffsetsRequestPartition(NamedTuple):
    partition_index: int
    start_offset: int

class AlterShareGroupOffsetsRequestTopic(NamedTuple):
    topic_name: str
    partitions: Sequence[AlterShareGroupOffsetsRequestPartition]

class AlterShareGroupOffsetsRequest(NamedTuple):
    group_id: str
    topics: Sequence[AlterShareGroupOffsetsRequestTopic]

class AlterShareGroupOffsetsResponsePartition(TypedDict, total=False):
    partition_index: int
    error_code: int
    error_message: str | None

class AlterShareGroupOffsetsResponseTopic(TypedDict, total=False):
    topic_name: str
    topic_id: UUID | None
    partitions: Collection[AlterShareGroupOffsetsResponsePartition]

class AlterShareGroupOffsetsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: Collection[AlterShareGroupOffsetsResponseTopic]

class DeleteShareGroupOffsetsRequestTopic(NamedTuple):
    topic_name: str

class DeleteShareGroupOffsetsRequest(NamedTuple):
    group_id: str
    topics: Sequence[DeleteShareGroupOffsetsRequestTopic]

class DeleteShareGroupOffsetsResponseTopic(TypedDict, total=False):
    topic_name: str
    topic_id: UUID | None
    error_code: int
    error_message: str | None

class DeleteShareGroupOffsetsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: Collection[DeleteShareGroupOffsetsResponseTopic]

class GetTelemetrySubscriptionsRequest(NamedTuple):
    client_instance_id: UUID | None

class GetTelemetrySubscriptionsResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
    client_instance_id: UUID | None
    subscription_id: int
    accepted_compression_types: bytes
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: Collection[str]

class PushTelemetryRequest(NamedTuple):
    client_instance_id: UUID | None
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes

class PushTelemetryResponse(TypedDict, total=False):
    throttle_time_ms: int
    error_code: int
