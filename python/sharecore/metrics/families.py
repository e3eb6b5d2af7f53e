"""Every metric of the broker, and the metric of Kafka's that it stands for.

`docs/metrics.md` is written from this table. Where Kafka has a metric its name is kept: domain, type and name
of the MBean in lower case, seconds in place of milliseconds; rates, averages and percentiles are left to the
query.
"""

from __future__ import annotations

from sharecore.config.client_metrics import ATTRIBUTES
from sharecore.metrics.bucket_families import BUCKET
from sharecore.metrics.family import Family, Kind, counter, gauge, histogram, summary
from sharecore.metrics.queue_families import QUEUES

_GROUP = "kafka.server:type=group-coordinator-metrics"
_SHARE = "kafka.server:type=share-coordinator-metrics"
_PARTITION = ("group", "topic", "partition")
_TOPIC = ("group", "topic")

BUILD = Family(
    "sharecore_build",
    Kind.INFO,
    "Version of the broker, its node and its cluster.",
    ("version", "node_id", "cluster_id"),
    ("kafka.server:type=app-info:version", "kafka.server:type=KafkaServer,name=ClusterId:Value"),
)
BROKER_STATE = gauge(
    "kafka_server_kafka_server_broker_state",
    "3: the broker runs.",
    kafka=("kafka.server:type=KafkaServer,name=BrokerState:Value",),
)
TOPICS = gauge(
    "kafka_controller_kafka_controller_global_topic_count",
    "Topics.",
    kafka=("kafka.controller:type=KafkaController,name=GlobalTopicCount:Value",),
)
PARTITIONS = gauge(
    "kafka_server_replica_manager_partition_count",
    "Partitions of all topics.",
    kafka=(
        "kafka.server:type=ReplicaManager,name=PartitionCount:Value",
        "kafka.server:type=ReplicaManager,name=LeaderCount:Value",
        "kafka.controller:type=KafkaController,name=GlobalPartitionCount:Value",
    ),
)
MESSAGES_IN = counter(
    "kafka_server_broker_topic_metrics_messages_in",
    "Offsets given out in a topic since it was created, control records among them.",
    "topic",
    kafka=("kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=*:Count",),
)
LOG_SIZE = gauge(
    "kafka_log_log_size_bytes",
    "Bytes of record batches that a topic holds, over its partitions.",
    "topic",
    kafka=("kafka.log:type=Log,name=Size,topic=*,partition=*:Value",),
)

REQUESTS = counter(
    "kafka_network_request_metrics_requests",
    "Requests by API and version.",
    "request",
    "version",
    kafka=("kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*,version=*:Count",),
)
REQUEST_TIME = histogram(
    "kafka_network_request_metrics_total_time_seconds",
    "From a request's last byte to its answer, by API: what it waited for included, the network not.",
    "request",
    kafka=("kafka.network:type=RequestMetrics,name=TotalTimeMs,request=*:Count",),
)
LOCAL_TIME = summary(
    "kafka_network_request_metrics_local_time_seconds",
    "Of the total time, what the broker worked before the request was answered or began to wait.",
    "request",
    kafka=("kafka.network:type=RequestMetrics,name=LocalTimeMs,request=*:Count",),
)
REQUEST_BYTES = counter(
    "kafka_network_request_metrics_request_bytes",
    "Bytes of requests by API, those of PRODUCE among them.",
    "request",
    kafka=(
        "kafka.network:type=RequestMetrics,name=RequestBytes,request=*:Count",
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec:Count",
    ),
)
RESPONSE_BYTES = counter(
    "kafka_server_broker_topic_metrics_bytes_out",
    "Bytes of answers by API, those of FETCH and SHARE_FETCH among them.",
    "request",
    kafka=("kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec:Count",),
)
CONNECTIONS = gauge(
    "kafka_server_socket_server_metrics_connection_count",
    "Open connections by listener.",
    "listener",
    kafka=("kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*:connection-count",),
)
MEMORY_USED = gauge(
    "kafka_network_socket_server_memory_pool_used_bytes",
    "Bytes of requests that are in memory (queued.max.request.bytes bounds them).",
    kafka=("kafka.network:type=SocketServer,name=MemoryPoolUsed:Value",),
)

GROUPS = gauge(
    "kafka_server_group_coordinator_metrics_group_count",
    "Groups by protocol.",
    "protocol",
    kafka=(f"{_GROUP},protocol=*:group-count",),
)
SHARE_GROUPS = gauge(
    "kafka_server_group_coordinator_metrics_share_group_count",
    "Share groups by state.",
    "state",
    kafka=(f"{_GROUP},state=*:share-group-count",),
)
CONSUMER_GROUPS = gauge(
    "kafka_server_group_coordinator_metrics_consumer_group_count",
    "Consumer groups (KIP-848) by state.",
    "state",
    kafka=(f"{_GROUP},state=*:consumer-group-count",),
)
CLASSIC_GROUPS = gauge(
    "kafka_coordinator_group_group_metadata_manager_num_groups",
    "Classic groups by state.",
    "state",
    kafka=(
        "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroupsStable:Value",
        "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroupsEmpty:Value",
    ),
)
SHARE_REBALANCES = counter(
    "kafka_server_group_coordinator_metrics_share_group_rebalance",
    "How often the epoch of a share group went up.",
    kafka=(f"{_GROUP}:share-group-rebalance-count", f"{_GROUP}:share-group-rebalance-rate"),
)
CONSUMER_REBALANCES = counter(
    "kafka_server_group_coordinator_metrics_consumer_group_rebalance",
    "How often the epoch of a consumer group went up.",
    kafka=(f"{_GROUP}:consumer-group-rebalance-count", f"{_GROUP}:consumer-group-rebalance-rate"),
)
GROUP_MEMBERS = gauge("sharecore_group_members", "Members of share groups, by group.", "group")
GROUP_PAUSED = gauge(
    "sharecore_share_group_paused",
    "1 while a share group is paused and its members get no records; 0 for others.",
    "group",
)
GROUP_PARTITIONS = gauge(
    "kafka_server_group_coordinator_metrics_num_partitions",
    "Partitions of __consumer_offsets that are served.",
    "state",
    kafka=(f"{_GROUP},state=*:num-partitions",),
)
GROUP_IDLE = gauge(
    "kafka_server_group_coordinator_metrics_thread_idle_ratio",
    "Part of the time since the scrape before in which the broker's one thread had nothing to do.",
    kafka=(f"{_GROUP}:thread-idle-ratio-avg", f"{_SHARE}:thread-idle-ratio-avg"),
)
GROUP_LOAD = gauge(
    "kafka_server_group_coordinator_metrics_partition_load_time_seconds",
    "How long it took to read __consumer_offsets when the broker started.",
    kafka=(f"{_GROUP}:partition-load-time-avg", f"{_GROUP}:partition-load-time-max"),
)

SHARE_ACKNOWLEDGEMENTS = counter(
    "kafka_server_broker_topic_metrics_total_share_acknowledgement_requests",
    "Requests that acknowledge something, whether or not they fetch as well.",
    kafka=(
        "kafka.server:type=BrokerTopicMetrics,name=TotalShareAcknowledgementRequestsPerSec:Count",
        "kafka.server:type=share-group-metrics:share-acknowledgement-count",
        "kafka.server:type=share-group-metrics:share-acknowledgement-rate",
    ),
)
SHARE_FETCHES = counter(
    "kafka_server_broker_topic_metrics_total_share_fetch_requests",
    "Requests that fetch for a share group, with acknowledgements or without.",
    kafka=("kafka.server:type=BrokerTopicMetrics,name=TotalShareFetchRequestsPerSec:Count",),
)
RECORD_ACKNOWLEDGEMENTS = counter(
    "kafka_server_share_group_metrics_record_acknowledgements",
    "Records acknowledged, by what was said of them.",
    "group",
    "ack_type",
    kafka=(
        "kafka.server:type=ShareGroupMetrics,name=RecordAcknowledgementsPerSec,ackType=*:Count",
        "kafka.server:type=share-group-metrics,ack-type=*:record-acknowledgement-count",
        "kafka.server:type=share-group-metrics,ack-type=*:record-acknowledgement-rate",
    ),
)
SHARE_LOADS = summary(
    "kafka_server_share_group_metrics_partition_load_time_seconds",
    "How long share partitions took to have their state.",
    kafka=(
        "kafka.server:type=ShareGroupMetrics,name=PartitionLoadTimeMs:Count",
        "kafka.server:type=share-group-metrics:partition-load-time-avg",
    ),
)
SHARE_LOAD_MAX = gauge(
    "kafka_server_share_group_metrics_partition_load_time_max_seconds",
    "The longest of these.",
    kafka=("kafka.server:type=share-group-metrics:partition-load-time-max",),
)
DEAD_LETTERS = counter(
    "kafka_server_share_group_metrics_dead_letter_queue_record_count",
    "Records written to a group's dead-letter topic (KIP-1191).",
    "group",
    kafka=("kafka.server:type=ShareGroupMetrics,name=DeadLetterQueueRecordCount,group=*:Count",),
)
DEAD_LETTER_WRITES = counter(
    "kafka_server_share_group_metrics_dead_letter_queue_total_produce_requests",
    "Ranges of records sent to the dead-letter topic.",
    "group",
    kafka=(
        "kafka.server:type=ShareGroupMetrics,name=DeadLetterQueueTotalProduceRequestsPerSec,group=*:Count",
    ),
)
DEAD_LETTER_FAILURES = counter(
    "kafka_server_share_group_metrics_dead_letter_queue_failed_produce_requests",
    "Ranges that the dead-letter topic did not take.",
    "group",
    kafka=(
        "kafka.server:type=ShareGroupMetrics,name=DeadLetterQueueFailedProduceRequestsPerSec,group=*:Count",
    ),
)
WITHOUT_LETTER = counter(
    "sharecore_share_group_records_without_dead_letter",
    "Records archived without a letter though the group has a dead-letter topic.",
    "group",
)
UNDELIVERABLE = counter(
    "sharecore_share_group_dead_letters_undeliverable",
    "Records of which no topic could take a dead letter as the group, the topic and the broker were set.",
    "group",
)
SESSIONS = gauge(
    "kafka_server_share_session_cache_share_sessions_count",
    "Share sessions that are open.",
    kafka=("kafka.server:type=ShareSessionCache,name=ShareSessionsCount:Value",),
)

STATE_PARTITIONS = gauge(
    "kafka_server_share_coordinator_metrics_num_partitions",
    "Partitions of __share_group_state that are served.",
    "state",
    kafka=(f"{_SHARE},state=*:num-partitions", f"{_SHARE}:num-partitions"),
)
STATE_LOADS = summary(
    "kafka_server_share_coordinator_metrics_partition_load_time_seconds",
    "How long it took to read partitions of __share_group_state.",
    kafka=(f"{_SHARE}:partition-load-time-avg",),
)
STATE_LOAD_MAX = gauge(
    "kafka_server_share_coordinator_metrics_partition_load_time_max_seconds",
    "The longest of these.",
    kafka=(f"{_SHARE}:partition-load-time-max",),
)
STATE_WRITES = counter(
    "kafka_server_share_coordinator_metrics_write",
    "Writes of share state that ended.",
    kafka=(f"{_SHARE}:write-total", f"{_SHARE}:write-rate"),
)
STATE_WRITE_TIME = summary(
    "kafka_server_share_coordinator_metrics_write_latency_seconds",
    "From the first of the writes that share a batch to the moment when all of them are durable, by batch.",
    kafka=(f"{_SHARE}:write-latency-avg",),
)
STATE_WRITE_MAX = gauge(
    "kafka_server_share_coordinator_metrics_write_latency_max_seconds",
    "The longest of these.",
    kafka=(f"{_SHARE}:write-latency-max",),
)
STATE_WRITE_FAILURES = counter(
    "sharecore_share_coordinator_write_failures", "Batches of share state that were given up."
)
STATE_REPAIRED = counter(
    "sharecore_share_coordinator_repaired_batches",
    "State batches that were read and could not be as they were: their records are delivered again.",
)

SHARE_PARTITIONS = gauge("sharecore_share_partitions", "Share partitions that have state or a leader.")
SHARE_PARTITIONS_UNSEEN = gauge(
    "sharecore_share_partitions_without_series",
    "Share partitions that are counted in their group's series alone (sharecore.metrics.series.max).",
)
GROUP_LAG = gauge(
    "sharecore_share_group_lag",
    "Records of a topic that wait for a share group or are in its hands.",
    *_TOPIC,
)
GROUP_IN_FLIGHT = gauge(
    "sharecore_share_group_in_flight", "Records in flight, over a topic's partitions.", *_TOPIC
)
GROUP_OLDEST = gauge(
    "sharecore_share_group_oldest_lease_age_seconds",
    "Age of the oldest lease of a topic's records that was not renewed since; 0 without one.",
    *_TOPIC,
)
GROUP_DELIVERIES = counter(
    "sharecore_share_group_deliveries",
    "Records leased, by which delivery it was; 16 stands for all above as well.",
    *_TOPIC,
    "delivery",
)
GROUP_TIMEOUTS = counter(
    "sharecore_share_group_acquisition_lock_timeouts", "Records whose acquisition lock ran out.", *_TOPIC
)
PART_START = gauge("sharecore_share_partition_start_offset", "Start offset (SPSO).", *_PARTITION)
PART_END = gauge(
    "sharecore_share_partition_end_offset", "End offset (SPEO): the highest offset in flight.", *_PARTITION
)
PART_LAG = gauge(
    "sharecore_share_partition_lag", "Records that wait for the share group or are in its hands.", *_PARTITION
)
PART_IN_FLIGHT = gauge(
    "kafka_server_share_partition_metrics_in_flight_message_count",
    "Records in flight: leased, given back, or settled behind one that is not.",
    *_PARTITION,
    kafka=(
        "kafka.server:type=SharePartitionMetrics,name=InFlightMessageCount,group=*,topic=*,partition=*:Value",
    ),
)
PART_OLDEST = gauge(
    "sharecore_share_partition_oldest_lease_age_seconds",
    "Age of the oldest lease that was not renewed since; 0 without one.",
    *_PARTITION,
)
PART_TIMEOUTS = counter(
    "kafka_server_share_partition_metrics_acquisition_lock_timeout",
    "Records whose acquisition lock ran out.",
    *_PARTITION,
    kafka=(
        "kafka.server:type=SharePartitionMetrics,name=AcquisitionLockTimeoutPerSec,"
        "group=*,topic=*,partition=*:Count",
    ),
)
PART_DELIVERIES = counter(
    "sharecore_share_partition_deliveries",
    "Records leased, by which delivery it was; 16 stands for all above as well.",
    *_PARTITION,
    "delivery",
)

STORE_COMMIT_TIME = histogram(
    "sharecore_store_commit_seconds",
    "How long it took to write and sync what was staged (with durability os: to write it).",
    kafka=("kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs:Count",),
)
STORE_WRITTEN = counter("sharecore_store_written_bytes", "Bytes written to the journal.")
STORE_FAILURES = counter(
    "sharecore_store_commit_failures", "Commits that failed, on a full disk for instance."
)
STORE_SEGMENTS = gauge("sharecore_store_segments", "Files of the journal.")
STORE_BYTES = gauge("sharecore_store_segment_bytes", "Bytes of record batches in these files.")
STORE_LIVE = gauge("sharecore_store_live_bytes", "Of these bytes, what a log still reaches.")
STORE_DAMAGED = gauge(
    "sharecore_store_damaged_batches",
    "Record batches that readers have found damaged on the disk since the start; the log names them.",
)
STORE_STAGED = gauge("sharecore_store_staged_bytes", "Bytes that wait for the disk.")
DISK_FREE = gauge("sharecore_store_disk_free_bytes", "Free space where the data directory is.")

TIER_NODES = gauge("sharecore_tier_nodes", "Nodes of the tier that are there, as far as this one knows.")
TIER_SLOTS = gauge(
    "sharecore_tier_slots",
    "Slots of this node: `owned`, `claiming`, `awaited` from another node, or `given_up` for one.",
    "state",
)
TIER_CLAIM_TIME = histogram(
    "sharecore_tier_claim_seconds",
    "From when a slot could be taken until its state was read and this node led it.",
)
TIER_HAND_OVER_TIME = histogram(
    "sharecore_tier_hand_over_seconds",
    "From when a slot was to be given up until members had settled what they held of it, and it was free.",
)
TIER_LOST = counter(
    "sharecore_tier_slots_lost",
    "Slots that this node had to give up at once: another one has claimed them, or a write is in doubt.",
)
TIER_LEASE = gauge(
    "sharecore_tier_lease_seconds",
    "For how long this node may lease records without another word from the cluster; 0: it leases nothing.",
)
TIER_FETCHED = counter("sharecore_tier_fetched_bytes", "Bytes of records fetched from the cluster to be led.")
TIER_CACHE = gauge(
    "sharecore_tier_cache_bytes",
    "Of these bytes, what is in memory (`sharecore.tier.cache.bytes` bounds it).",
)

CLIENT_INSTANCES = gauge(
    "kafka_server_client_metrics_instance_count",
    "Clients that asked which metrics to push (KIP-714), and are connected.",
    kafka=("kafka.server:type=client-metrics:instance-count",),
)
CLIENT_UNKNOWN = counter(
    "kafka_server_client_metrics_unknown_subscription_request",
    "Pushes of clients that have to ask anew what to push.",
    kafka=(
        "kafka.server:type=client-metrics:unknown-subscription-request-count",
        "kafka.server:type=client-metrics:unknown-subscription-request-rate",
    ),
)
CLIENT_PUSHES = counter(
    "sharecore_client_metrics_pushes", "Pushes of clients, by the error they got.", "error"
)
CLIENT_SERIES = gauge("sharecore_client_metrics_series", "Series that clients have pushed.")
CLIENT_SERIES_LEFT_OUT = gauge(
    "sharecore_client_metrics_series_left_out",
    "Values of the newest pushes without a series: beyond a limit (`sharecore.telemetry.series.max`, "
    "`sharecore.telemetry.client.series.max`), or of a kind that is not shown.",
)
CLIENT_INFO = gauge(
    "sharecore_client_info",
    "1: a client that pushes; with `group`, `client_rack`, `group_instance_id`, `group_member_id` and "
    "`transactional_id` where it tells them.",
    *ATTRIBUTES,
)

LOOP_DELAY = histogram(
    "sharecore_event_loop_delay_seconds",
    "How late the broker's one thread came to a timer, four times a second.",
)
SCRAPE_TIME = summary("sharecore_scrape_seconds", "CPU that earlier scrapes took.")

FAMILIES: tuple[Family, ...] = (
    *(each for each in list(globals().values()) if isinstance(each, Family)),
    *QUEUES,
    *BUCKET,
)
"""All of them, in the order of the page."""

_REQUEST = "kafka.network:type=RequestMetrics,name="
_SHARE_PARTITION = "kafka.server:type=SharePartitionMetrics,name="
_SHARE_GROUP = "kafka.server:type=ShareGroupMetrics,name="

NOT_HERE: dict[str, str] = {
    f"{_GROUP}:event-*, batch-*, background-*": (
        "coordinators have no queue of events, they work in the one thread of the broker: "
        "`sharecore_event_loop_delay_seconds` is how long work waits"
    ),
    f"{_SHARE}:event-*, batch-*": "the same",
    f"{_SHARE}:thread-idle-ratio-min": "there is one thread: least and average are the same",
    f"{_GROUP}:streams-group-*": "there are no streams groups",
    f"{_SHARE_PARTITION}FetchLockTimeMs, FetchLockRatio": "a share partition has no fetch lock: one thread",
    f"{_SHARE_GROUP}RequestTopicPartitionsFetchRatio, TopicPartitionsAcquireTimeMs": "the same",
    f"{_SHARE_PARTITION}InFlightBatchCount, InFlightBatchMessageCount": (
        "neighbouring records of one state are one run, whatever batch they came in"
    ),
    "kafka.server:type=ShareSessionCache,name=ShareSessionEvictionsPerSec": (
        "no session is evicted: at the limit a new one is refused"
    ),
    f"{_REQUEST}RequestQueueTimeMs, ResponseQueueTimeMs, ResponseSendTimeMs": "no queues between threads",
    f"{_REQUEST}RemoteTimeMs": "total time less local time",
    f"{_REQUEST}ErrorsPerSec": "answers are not searched for errors of single partitions",
    "kafka.cluster:*, kafka.raft:*, replicas, controllers": "one broker: no replicas, no quorum",
}
"""Metrics of Kafka's without a counterpart, and why."""
