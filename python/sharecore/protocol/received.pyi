"""Types of the answers of other brokers as they are read, for type checkers only.

Written by `python -m tests.unit.protocol.message_types` from Kafka's schemas. An answer has only fields of
the version of its request; a class has those of all served versions.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

class BatchIndexAndErrorMessage(NamedTuple):
    batch_index: int
    batch_index_error_message: str | None

class ProduceLeaderIdAndEpoch(NamedTuple):
    leader_id: int
    leader_epoch: int

class PartitionProduceResponse(NamedTuple):
    index: int  # type: ignore[assignment]
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: Sequence[BatchIndexAndErrorMessage]
    error_message: str | None
    current_leader: ProduceLeaderIdAndEpoch

class TopicProduceResponse(NamedTuple):
    topic_id: UUID | None
    partition_responses: Sequence[PartitionProduceResponse]
    name: str

class ProduceNodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None

class ProduceResponse(NamedTuple):
    responses: Sequence[TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: Sequence[ProduceNodeEndpoint]

class FetchEpochEndOffset(NamedTuple):
    epoch: int
    end_offset: int

class FetchLeaderIdAndEpoch(NamedTuple):
    leader_id: int
    leader_epoch: int

class SnapshotId(NamedTuple):
    end_offset: int
    epoch: int

class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int

class FetchPartitionData(NamedTuple):
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: FetchEpochEndOffset
    current_leader: FetchLeaderIdAndEpoch
    snapshot_id: SnapshotId
    aborted_transactions: Sequence[AbortedTransaction] | None
    preferred_read_replica: int
    records: bytes | None

class FetchableTopicResponse(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[FetchPartitionData]
    topic: str

class FetchNodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None

class FetchResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: Sequence[FetchableTopicResponse]
    node_endpoints: Sequence[FetchNodeEndpoint]

class ListOffsetsPartitionResponse(NamedTuple):
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int

class ListOffsetsTopicResponse(NamedTuple):
    name: str
    partitions: Sequence[ListOffsetsPartitionResponse]

class ListOffsetsResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[ListOffsetsTopicResponse]

class MetadataResponseBroker(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None

class MetadataResponsePartition(NamedTuple):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    offline_replicas: Sequence[int]

class MetadataResponseTopic(NamedTuple):
    error_code: int
    name: str | None
    topic_id: UUID | None
    is_internal: bool
    partitions: Sequence[MetadataResponsePartition]
    topic_authorized_operations: int

class MetadataResponse(NamedTuple):
    throttle_time_ms: int
    brokers: Sequence[MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: Sequence[MetadataResponseTopic]
    error_code: int
    cluster_authorized_operations: int

class OffsetCommitResponsePartition(NamedTuple):
    partition_index: int
    error_code: int

class OffsetCommitResponseTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[OffsetCommitResponsePartition]
    name: str

class OffsetCommitResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[OffsetCommitResponseTopic]

class OffsetFetchResponsePartitions(NamedTuple):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

class OffsetFetchResponseTopics(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[OffsetFetchResponsePartitions]
    name: str

class OffsetFetchResponseGroup(NamedTuple):
    group_id: str
    topics: Sequence[OffsetFetchResponseTopics]
    error_code: int

class OffsetFetchResponsePartition(NamedTuple):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

class OffsetFetchResponseTopic(NamedTuple):
    name: str
    partitions: Sequence[OffsetFetchResponsePartition]

class OffsetFetchResponse(NamedTuple):
    throttle_time_ms: int
    groups: Sequence[OffsetFetchResponseGroup]
    topics: Sequence[OffsetFetchResponseTopic]
    error_code: int

class Coordinator(NamedTuple):
    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str | None

class FindCoordinatorResponse(NamedTuple):
    throttle_time_ms: int
    coordinators: Sequence[Coordinator]
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int

class JoinGroupResponseMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    metadata: bytes

class JoinGroupResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: Sequence[JoinGroupResponseMember]

class HeartbeatResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int

class MemberResponse(NamedTuple):
    member_id: str
    group_instance_id: str | None
    error_code: int

class LeaveGroupResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    members: Sequence[MemberResponse]

class SyncGroupResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes

class DescribedGroupMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes

class DescribeGroupsDescribedGroup(NamedTuple):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: Sequence[DescribedGroupMember]
    authorized_operations: int

class DescribeGroupsResponse(NamedTuple):
    throttle_time_ms: int
    groups: Sequence[DescribeGroupsDescribedGroup]

class SaslHandshakeResponse(NamedTuple):
    error_code: int
    mechanisms: Sequence[str]

class ApiVersion(NamedTuple):
    api_key: int
    min_version: int
    max_version: int

class SupportedFeatureKey(NamedTuple):
    name: str
    min_version: int
    max_version: int

class FinalizedFeatureKey(NamedTuple):
    name: str
    max_version_level: int
    min_version_level: int

class ApiVersionsResponse(NamedTuple):
    error_code: int
    api_keys: Sequence[ApiVersion]
    throttle_time_ms: int
    supported_features: Sequence[SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: Sequence[FinalizedFeatureKey]
    zk_migration_ready: bool

class CreatableTopicConfigs(NamedTuple):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool

class CreatableTopicResult(NamedTuple):
    name: str
    topic_id: UUID | None
    error_code: int
    error_message: str | None
    topic_config_error_code: int
    num_partitions: int
    replication_factor: int
    configs: Sequence[CreatableTopicConfigs] | None

class CreateTopicsResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[CreatableTopicResult]

class DeletableTopicResult(NamedTuple):
    name: str | None
    topic_id: UUID | None
    error_code: int
    error_message: str | None

class DeleteTopicsResponse(NamedTuple):
    throttle_time_ms: int
    responses: Sequence[DeletableTopicResult]

class DeleteRecordsPartitionResult(NamedTuple):
    partition_index: int
    low_watermark: int
    error_code: int

class DeleteRecordsTopicResult(NamedTuple):
    name: str
    partitions: Sequence[DeleteRecordsPartitionResult]

class DeleteRecordsResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[DeleteRecordsTopicResult]

class InitProducerIdResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int

class OffsetForLeaderEpochEpochEndOffset(NamedTuple):
    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int

class OffsetForLeaderTopicResult(NamedTuple):
    topic: str
    partitions: Sequence[OffsetForLeaderEpochEpochEndOffset]

class OffsetForLeaderEpochResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[OffsetForLeaderTopicResult]

class AddPartitionsToTxnPartitionResult(NamedTuple):
    partition_index: int
    partition_error_code: int

class AddPartitionsToTxnTopicResult(NamedTuple):
    name: str
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult]

class AddPartitionsToTxnResponse(NamedTuple):
    throttle_time_ms: int
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult]

class AddOffsetsToTxnResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int

class EndTxnResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int

class TxnOffsetCommitResponsePartition(NamedTuple):
    partition_index: int
    error_code: int

class TxnOffsetCommitResponseTopic(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[TxnOffsetCommitResponsePartition]
    name: str

class TxnOffsetCommitResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[TxnOffsetCommitResponseTopic]

class AclDescription(NamedTuple):
    principal: str
    host: str
    operation: int
    permission_type: int

class DescribeAclsResource(NamedTuple):
    resource_type: int
    resource_name: str
    pattern_type: int
    acls: Sequence[AclDescription]

class DescribeAclsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: Sequence[DescribeAclsResource]

class AclCreationResult(NamedTuple):
    error_code: int
    error_message: str | None

class CreateAclsResponse(NamedTuple):
    throttle_time_ms: int
    results: Sequence[AclCreationResult]

class DeleteAclsMatchingAcl(NamedTuple):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

class DeleteAclsFilterResult(NamedTuple):
    error_code: int
    error_message: str | None
    matching_acls: Sequence[DeleteAclsMatchingAcl]

class DeleteAclsResponse(NamedTuple):
    throttle_time_ms: int
    filter_results: Sequence[DeleteAclsFilterResult]

class DescribeConfigsSynonym(NamedTuple):
    name: str
    value: str | None
    source: int

class DescribeConfigsResourceResult(NamedTuple):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    synonyms: Sequence[DescribeConfigsSynonym]
    config_type: int
    documentation: str | None

class DescribeConfigsResult(NamedTuple):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: Sequence[DescribeConfigsResourceResult]

class DescribeConfigsResponse(NamedTuple):
    throttle_time_ms: int
    results: Sequence[DescribeConfigsResult]

class AlterConfigsResponseAlterConfigsResourceResponse(NamedTuple):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str

class AlterConfigsResponse(NamedTuple):
    throttle_time_ms: int
    responses: Sequence[AlterConfigsResponseAlterConfigsResourceResponse]

class DescribeLogDirsPartition(NamedTuple):
    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool

class DescribeLogDirsTopic(NamedTuple):
    name: str
    partitions: Sequence[DescribeLogDirsPartition]

class DescribeLogDirsResult(NamedTuple):
    error_code: int
    log_dir: str
    topics: Sequence[DescribeLogDirsTopic]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool

class DescribeLogDirsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    results: Sequence[DescribeLogDirsResult]

class SaslAuthenticateResponse(NamedTuple):
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int

class CreatePartitionsTopicResult(NamedTuple):
    name: str
    error_code: int
    error_message: str | None

class CreatePartitionsResponse(NamedTuple):
    throttle_time_ms: int
    results: Sequence[CreatePartitionsTopicResult]

class ElectLeadersPartitionResult(NamedTuple):
    partition_id: int
    error_code: int
    error_message: str | None

class ReplicaElectionResult(NamedTuple):
    topic: str
    partition_result: Sequence[ElectLeadersPartitionResult]

class ElectLeadersResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    replica_election_results: Sequence[ReplicaElectionResult]

class IncrementalAlterConfigsAlterConfigsResourceResponse(NamedTuple):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str

class IncrementalAlterConfigsResponse(NamedTuple):
    throttle_time_ms: int
    responses: Sequence[IncrementalAlterConfigsAlterConfigsResourceResponse]

class ReassignablePartitionResponse(NamedTuple):
    partition_index: int
    error_code: int
    error_message: str | None

class ReassignableTopicResponse(NamedTuple):
    name: str
    partitions: Sequence[ReassignablePartitionResponse]

class AlterPartitionReassignmentsResponse(NamedTuple):
    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: Sequence[ReassignableTopicResponse]

class OngoingPartitionReassignment(NamedTuple):
    partition_index: int
    replicas: Sequence[int]
    adding_replicas: Sequence[int]
    removing_replicas: Sequence[int]

class OngoingTopicReassignment(NamedTuple):
    name: str
    partitions: Sequence[OngoingPartitionReassignment]

class ListPartitionReassignmentsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: Sequence[OngoingTopicReassignment]

class DescribeQuorumReplicaState(NamedTuple):
    replica_id: int
    replica_directory_id: UUID | None
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int

class DescribeQuorumResponsePartitionData(NamedTuple):
    partition_index: int
    error_code: int
    error_message: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: Sequence[DescribeQuorumReplicaState]
    observers: Sequence[DescribeQuorumReplicaState]

class DescribeQuorumResponseTopicData(NamedTuple):
    topic_name: str
    partitions: Sequence[DescribeQuorumResponsePartitionData]

class Listener(NamedTuple):
    name: str
    host: str
    port: int

class Node(NamedTuple):
    node_id: int
    listeners: Sequence[Listener]

class DescribeQuorumResponse(NamedTuple):
    error_code: int
    error_message: str | None
    topics: Sequence[DescribeQuorumResponseTopicData]
    nodes: Sequence[Node]

class OffsetDeleteResponsePartition(NamedTuple):
    partition_index: int
    error_code: int

class OffsetDeleteResponseTopic(NamedTuple):
    name: str
    partitions: Sequence[OffsetDeleteResponsePartition]

class OffsetDeleteResponse(NamedTuple):
    error_code: int
    throttle_time_ms: int
    topics: Sequence[OffsetDeleteResponseTopic]

class CredentialInfo(NamedTuple):
    mechanism: int
    iterations: int

class DescribeUserScramCredentialsResult(NamedTuple):
    user: str
    error_code: int
    error_message: str | None
    credential_infos: Sequence[CredentialInfo]

class DescribeUserScramCredentialsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: Sequence[DescribeUserScramCredentialsResult]

class AlterUserScramCredentialsResult(NamedTuple):
    user: str
    error_code: int
    error_message: str | None

class AlterUserScramCredentialsResponse(NamedTuple):
    throttle_time_ms: int
    results: Sequence[AlterUserScramCredentialsResult]

class DescribeClientQuotasEntityData(NamedTuple):
    entity_type: str
    entity_name: str | None

class ValueData(NamedTuple):
    key: str
    value: float

class DescribeClientQuotasEntryData(NamedTuple):
    entity: Sequence[DescribeClientQuotasEntityData]
    values: Sequence[ValueData]

class DescribeClientQuotasResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: Sequence[DescribeClientQuotasEntryData] | None

class AlterClientQuotasResponseEntityData(NamedTuple):
    entity_type: str
    entity_name: str | None

class AlterClientQuotasResponseEntryData(NamedTuple):
    error_code: int
    error_message: str | None
    entity: Sequence[AlterClientQuotasResponseEntityData]

class AlterClientQuotasResponse(NamedTuple):
    throttle_time_ms: int
    entries: Sequence[AlterClientQuotasResponseEntryData]

class UpdatableFeatureResult(NamedTuple):
    feature: str
    error_code: int
    error_message: str | None

class UpdateFeaturesResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: Sequence[UpdatableFeatureResult]

class DescribeClusterBroker(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool

class DescribeClusterResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: Sequence[DescribeClusterBroker]
    cluster_authorized_operations: int

class ProducerState(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int

class PartitionResponse(NamedTuple):
    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: Sequence[ProducerState]

class TopicResponse(NamedTuple):
    name: str
    partitions: Sequence[PartitionResponse]

class DescribeProducersResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[TopicResponse]

class DescribeTransactionsTopicData(NamedTuple):
    topic: str
    partitions: Sequence[int]

class DescribeTransactionsTransactionState(NamedTuple):
    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    producer_id: int
    producer_epoch: int
    topics: Sequence[DescribeTransactionsTopicData]

class DescribeTransactionsResponse(NamedTuple):
    throttle_time_ms: int
    transaction_states: Sequence[DescribeTransactionsTransactionState]

class ListTransactionsTransactionState(NamedTuple):
    transactional_id: str
    producer_id: int
    transaction_state: str

class ListTransactionsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: Sequence[str]
    transaction_states: Sequence[ListTransactionsTransactionState]

class ConsumerGroupHeartbeatResponseTopicPartitions(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[int]

class ConsumerGroupHeartbeatAssignment(NamedTuple):
    topic_partitions: Sequence[ConsumerGroupHeartbeatResponseTopicPartitions]

class ConsumerGroupHeartbeatResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatAssignment | None

class ConsumerGroupDescribeTopicPartitions(NamedTuple):
    topic_id: UUID | None
    topic_name: str
    partitions: Sequence[int]

class ConsumerGroupDescribeAssignment(NamedTuple):
    topic_partitions: Sequence[ConsumerGroupDescribeTopicPartitions]

class ConsumerGroupDescribeMember(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    subscribed_topic_regex: str | None
    assignment: ConsumerGroupDescribeAssignment
    target_assignment: ConsumerGroupDescribeAssignment
    member_type: int

class ConsumerGroupDescribeDescribedGroup(NamedTuple):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: Sequence[ConsumerGroupDescribeMember]
    authorized_operations: int

class ConsumerGroupDescribeResponse(NamedTuple):
    throttle_time_ms: int
    groups: Sequence[ConsumerGroupDescribeDescribedGroup]

class ConfigResource(NamedTuple):
    resource_name: str
    resource_type: int

class ListConfigResourcesResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    config_resources: Sequence[ConfigResource]

class DescribeTopicPartitionsResponsePartition(NamedTuple):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    eligible_leader_replicas: Sequence[int] | None
    last_known_elr: Sequence[int] | None
    offline_replicas: Sequence[int]

class DescribeTopicPartitionsResponseTopic(NamedTuple):
    error_code: int
    name: str | None
    topic_id: UUID | None
    is_internal: bool
    partitions: Sequence[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int

class DescribeTopicPartitionsResponseCursor(NamedTuple):
    topic_name: str
    partition_index: int

class DescribeTopicPartitionsResponse(NamedTuple):
    throttle_time_ms: int
    topics: Sequence[DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponseCursor | None

class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str

class ListGroupsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    groups: Sequence[ListedGroup]

class DeletableGroupResult(NamedTuple):
    group_id: str
    error_code: int
    error_message: str | None

class DeleteGroupsResponse(NamedTuple):
    throttle_time_ms: int
    results: Sequence[DeletableGroupResult]

class ShareGroupHeartbeatTopicPartitions(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[int]

class ShareGroupHeartbeatAssignment(NamedTuple):
    topic_partitions: Sequence[ShareGroupHeartbeatTopicPartitions]

class ShareGroupHeartbeatResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatAssignment | None

class ShareGroupDescribeTopicPartitions(NamedTuple):
    topic_id: UUID | None
    topic_name: str
    partitions: Sequence[int]

class ShareGroupDescribeAssignment(NamedTuple):
    topic_partitions: Sequence[ShareGroupDescribeTopicPartitions]

class ShareGroupDescribeMember(NamedTuple):
    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    assignment: ShareGroupDescribeAssignment

class ShareGroupDescribeDescribedGroup(NamedTuple):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: Sequence[ShareGroupDescribeMember]
    authorized_operations: int

class ShareGroupDescribeResponse(NamedTuple):
    throttle_time_ms: int
    groups: Sequence[ShareGroupDescribeDescribedGroup]

class ShareFetchLeaderIdAndEpoch(NamedTuple):
    leader_id: int
    leader_epoch: int

class AcquiredRecords(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int

class ShareFetchPartitionData(NamedTuple):
    partition_index: int
    error_code: int
    error_message: str | None
    acknowledge_error_code: int
    acknowledge_error_message: str | None
    current_leader: ShareFetchLeaderIdAndEpoch
    records: bytes
    acquired_records: Sequence[AcquiredRecords]

class ShareFetchableTopicResponse(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[ShareFetchPartitionData]

class ShareFetchNodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None

class ShareFetchResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: Sequence[ShareFetchableTopicResponse]
    node_endpoints: Sequence[ShareFetchNodeEndpoint]

class ShareAcknowledgeLeaderIdAndEpoch(NamedTuple):
    leader_id: int
    leader_epoch: int

class ShareAcknowledgePartitionData(NamedTuple):
    partition_index: int
    error_code: int
    error_message: str | None
    current_leader: ShareAcknowledgeLeaderIdAndEpoch

class ShareAcknowledgeTopicResponse(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[ShareAcknowledgePartitionData]

class ShareAcknowledgeNodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None

class ShareAcknowledgeResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: Sequence[ShareAcknowledgeTopicResponse]
    node_endpoints: Sequence[ShareAcknowledgeNodeEndpoint]

class InitializeShareGroupStatePartitionResult(NamedTuple):
    partition: int
    error_code: int
    error_message: str | None

class InitializeStateResult(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[InitializeShareGroupStatePartitionResult]

class InitializeShareGroupStateResponse(NamedTuple):
    results: Sequence[InitializeStateResult]

class ReadShareGroupStateStateBatch(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

class ReadShareGroupStatePartitionResult(NamedTuple):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    start_offset: int
    state_batches: Sequence[ReadShareGroupStateStateBatch]

class ReadStateResult(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[ReadShareGroupStatePartitionResult]

class ReadShareGroupStateResponse(NamedTuple):
    results: Sequence[ReadStateResult]

class WriteShareGroupStatePartitionResult(NamedTuple):
    partition: int
    error_code: int
    error_message: str | None

class WriteStateResult(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[WriteShareGroupStatePartitionResult]

class WriteShareGroupStateResponse(NamedTuple):
    results: Sequence[WriteStateResult]

class DeleteShareGroupStatePartitionResult(NamedTuple):
    partition: int
    error_code: int
    error_message: str | None

class DeleteStateResult(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[DeleteShareGroupStatePartitionResult]

class DeleteShareGroupStateResponse(NamedTuple):
    results: Sequence[DeleteStateResult]

class ReadShareGroupStateSummaryPartitionResult(NamedTuple):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int

class ReadStateSummaryResult(NamedTuple):
    topic_id: UUID | None
    partitions: Sequence[ReadShareGroupStateSummaryPartitionResult]

class ReadShareGroupStateSummaryResponse(NamedTuple):
    results: Sequence[ReadStateSummaryResult]

class DescribeShareGroupOffsetsResponsePartition(NamedTuple):
    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: int
    error_code: int
    error_message: str | None

class DescribeShareGroupOffsetsResponseTopic(NamedTuple):
    topic_name: str
    topic_id: UUID | None
    partitions: Sequence[DescribeShareGroupOffsetsResponsePartition]

class DescribeShareGroupOffsetsResponseGroup(NamedTuple):
    group_id: str
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic]
    error_code: int
    error_message: str | None

class DescribeShareGroupOffsetsResponse(NamedTuple):
    throttle_time_ms: int
    groups: Sequence[DescribeShareGroupOffsetsResponseGroup]

class AlterShareGroupOffsetsResponsePartition(NamedTuple):
    partition_index: int
    error_code: int
    error_message: str | None

class AlterShareGroupOffsetsResponseTopic(NamedTuple):
    topic_name: str
    topic_id: UUID | None
    partitions: Sequence[AlterShareGroupOffsetsResponsePartition]

class AlterShareGroupOffsetsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: Sequence[AlterShareGroupOffsetsResponseTopic]

class DeleteShareGroupOffsetsResponseTopic(NamedTuple):
    topic_name: str
    topic_id: UUID | None
    error_code: int
    error_message: str | None

class DeleteShareGroupOffsetsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: Sequence[DeleteShareGroupOffsetsResponseTopic]

class GetTelemetrySubscriptionsResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
    client_instance_id: UUID | None
    subscription_id: int
    accepted_compression_types: bytes
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: Sequence[str]

class PushTelemetryResponse(NamedTuple):
    throttle_time_ms: int
    error_code: int
