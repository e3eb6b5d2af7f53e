"""Every metric of the broker, and the metric of Kafka's that it corresponds to.

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
    "Offsets appended to a topic since it was created, including control records.",
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
    "Time from a request's last byte to its response, by API; includes waits, excludes the network.",
    "request",
    kafka=("kafka.network:type=RequestMetrics,name=TotalTimeMs,request=*:Count",),
)
LOCAL_TIME = summary(
    "kafka_network_request_metrics_local_time_seconds",
    "The part of the total time in which the broker worked on the request, until it was answered or waited.",
    "request",
    kafka=("kafka.network:type=RequestMetrics,name=LocalTimeMs,request=*:Count",),
)
REQUEST_BYTES = counter(
    "kafka_network_request_metrics_request_bytes",
    "Bytes of requests by API.",
    "request",
    kafka=(
        "kafka.network:type=RequestMetrics,name=RequestBytes,request=*:Count",
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec:Count",
    ),
)
RESPONSE_BYTES = counter(
    "kafka_server_broker_topic_metrics_bytes_out",
    "Bytes of responses by API.",
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
    "Bytes of requests in memory (limit: queued.max.request.bytes).",
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
    "Epoch increments of share groups (rebalances).",
    kafka=(f"{_GROUP}:share-group-rebalance-count", f"{_GROUP}:share-group-rebalance-rate"),
)
CONSUMER_REBALANCES = counter(
    "kafka_server_group_coordinator_metrics_consumer_group_rebalance",
    "Epoch increments of consumer groups (rebalances).",
    kafka=(f"{_GROUP}:consumer-group-rebalance-count", f"{_GROUP}:consumer-group-rebalance-rate"),
)
GROUP_MEMBERS = gauge("sharecore_group_members", "Members of share groups, by group.", "group")
GROUP_PAUSED = gauge(
    "sharecore_share_group_paused",
    "1 while delivery to a share group is paused, else 0.",
    "group",
)
GROUP_PARTITIONS = gauge(
    "kafka_server_group_coordinator_metrics_num_partitions",
    "Loaded partitions of __consumer_offsets.",
    "state",
    kafka=(f"{_GROUP},state=*:num-partitions",),
)
GROUP_IDLE = gauge(
    "kafka_server_group_coordinator_metrics_thread_idle_ratio",
    "Fraction of time since the last scrape in which the broker's event loop was idle.",
    kafka=(f"{_GROUP}:thread-idle-ratio-avg", f"{_SHARE}:thread-idle-ratio-avg"),
)
GROUP_LOAD = gauge(
    "kafka_server_group_coordinator_metrics_partition_load_time_seconds",
    "Time to load __consumer_offsets at start.",
    kafka=(f"{_GROUP}:partition-load-time-avg", f"{_GROUP}:partition-load-time-max"),
)

SHARE_ACKNOWLEDGEMENTS = counter(
    "kafka_server_broker_topic_metrics_total_share_acknowledgement_requests",
    "Requests with acknowledgements, with or without a fetch.",
    kafka=(
        "kafka.server:type=BrokerTopicMetrics,name=TotalShareAcknowledgementRequestsPerSec:Count",
        "kafka.server:type=share-group-metrics:share-acknowledgement-count",
        "kafka.server:type=share-group-metrics:share-acknowledgement-rate",
    ),
)
SHARE_FETCHES = counter(
    "kafka_server_broker_topic_metrics_total_share_fetch_requests",
    "Share-fetch requests, with or without acknowledgements.",
    kafka=("kafka.server:type=BrokerTopicMetrics,name=TotalShareFetchRequestsPerSec:Count",),
)
RECORD_ACKNOWLEDGEMENTS = counter(
    "kafka_server_share_group_metrics_record_acknowledgements",
    "Acknowledged records, by acknowledge type.",
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
    "Time to load the state of share partitions.",
    kafka=(
        "kafka.server:type=ShareGroupMetrics,name=PartitionLoadTimeMs:Count",
        "kafka.server:type=share-group-metrics:partition-load-time-avg",
    ),
)
SHARE_LOAD_MAX = gauge(
    "kafka_server_share_group_metrics_partition_load_time_max_seconds",
    "The maximum of the above.",
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
    "Ranges that could not be written to the dead-letter topic.",
    "group",
    kafka=(
        "kafka.server:type=ShareGroupMetrics,name=DeadLetterQueueFailedProduceRequestsPerSec,group=*:Count",
    ),
)
WITHOUT_LETTER = counter(
    "sharecore_share_group_records_without_dead_letter",
    "Records archived without a dead-letter record although the group has a dead-letter topic.",
    "group",
)
UNDELIVERABLE = counter(
    "sharecore_share_group_dead_letters_undeliverable",
    "Records without a dead-letter record because of the settings of group, topic or broker.",
    "group",
)
SESSIONS = gauge(
    "kafka_server_share_session_cache_share_sessions_count",
    "Open share sessions.",
    kafka=("kafka.server:type=ShareSessionCache,name=ShareSessionsCount:Value",),
)

STATE_PARTITIONS = gauge(
    "kafka_server_share_coordinator_metrics_num_partitions",
    "Loaded partitions of __share_group_state.",
    "state",
    kafka=(f"{_SHARE},state=*:num-partitions", f"{_SHARE}:num-partitions"),
)
STATE_LOADS = summary(
    "kafka_server_share_coordinator_metrics_partition_load_time_seconds",
    "Time to load partitions of __share_group_state.",
    kafka=(f"{_SHARE}:partition-load-time-avg",),
)
STATE_LOAD_MAX = gauge(
    "kafka_server_share_coordinator_metrics_partition_load_time_max_seconds",
    "The maximum of the above.",
    kafka=(f"{_SHARE}:partition-load-time-max",),
)
STATE_WRITES = counter(
    "kafka_server_share_coordinator_metrics_write",
    "Completed writes of share state.",
    kafka=(f"{_SHARE}:write-total", f"{_SHARE}:write-rate"),
)
STATE_WRITE_TIME = summary(
    "kafka_server_share_coordinator_metrics_write_latency_seconds",
    "Time from the first write in a batch until the batch is durable.",
    kafka=(f"{_SHARE}:write-latency-avg",),
)
STATE_WRITE_MAX = gauge(
    "kafka_server_share_coordinator_metrics_write_latency_max_seconds",
    "The maximum of the above.",
    kafka=(f"{_SHARE}:write-latency-max",),
)
STATE_WRITE_FAILURES = counter("sharecore_share_coordinator_write_failures", "Failed batches of share state.")
STATE_REPAIRED = counter(
    "sharecore_share_coordinator_repaired_batches",
    "State batches that were loaded and found inconsistent; their records are redelivered.",
)

SHARE_PARTITIONS = gauge("sharecore_share_partitions", "Share partitions with state or a leader.")
SHARE_PARTITIONS_UNSEEN = gauge(
    "sharecore_share_partitions_without_series",
    "Share partitions without series of their own, because of sharecore.metrics.series.max.",
)
GROUP_LAG = gauge(
    "sharecore_share_group_lag",
    "Lag of a share group in a topic: records waiting or in flight.",
    *_TOPIC,
)
GROUP_IN_FLIGHT = gauge(
    "sharecore_share_group_in_flight", "Records in flight, over a topic's partitions.", *_TOPIC
)
GROUP_OLDEST = gauge(
    "sharecore_share_group_oldest_lease_age_seconds",
    "Age of the oldest acquisition lock on a topic's records since its last renewal; 0 if none.",
    *_TOPIC,
)
GROUP_DELIVERIES = counter(
    "sharecore_share_group_deliveries",
    "Acquired records by delivery count; 16 includes higher counts.",
    *_TOPIC,
    "delivery",
)
GROUP_TIMEOUTS = counter(
    "sharecore_share_group_acquisition_lock_timeouts", "Records whose acquisition lock expired.", *_TOPIC
)
PART_START = gauge("sharecore_share_partition_start_offset", "Start offset (SPSO).", *_PARTITION)
PART_END = gauge(
    "sharecore_share_partition_end_offset", "End offset (SPEO): the highest offset in flight.", *_PARTITION
)
PART_LAG = gauge("sharecore_share_partition_lag", "Lag: records waiting or in flight.", *_PARTITION)
PART_IN_FLIGHT = gauge(
    "kafka_server_share_partition_metrics_in_flight_message_count",
    "Records in flight: acquired, available again, or done beyond the start offset.",
    *_PARTITION,
    kafka=(
        "kafka.server:type=SharePartitionMetrics,name=InFlightMessageCount,group=*,topic=*,partition=*:Value",
    ),
)
PART_OLDEST = gauge(
    "sharecore_share_partition_oldest_lease_age_seconds",
    "Age of the oldest acquisition lock since its last renewal; 0 if none.",
    *_PARTITION,
)
PART_TIMEOUTS = counter(
    "kafka_server_share_partition_metrics_acquisition_lock_timeout",
    "Records whose acquisition lock expired.",
    *_PARTITION,
    kafka=(
        "kafka.server:type=SharePartitionMetrics,name=AcquisitionLockTimeoutPerSec,"
        "group=*,topic=*,partition=*:Count",
    ),
)
PART_DELIVERIES = counter(
    "sharecore_share_partition_deliveries",
    "Acquired records by delivery count; 16 includes higher counts.",
    *_PARTITION,
    "delivery",
)

STORE_COMMIT_TIME = histogram(
    "sharecore_store_commit_seconds",
    "Time of a commit: write and sync of staged records (with durability os: write only).",
    kafka=("kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs:Count",),
)
STORE_WRITTEN = counter("sharecore_store_written_bytes", "Bytes written to the journal.")
STORE_FAILURES = counter("sharecore_store_commit_failures", "Failed commits, for example on a full disk.")
STORE_MAINTENANCE_FAILURES = counter(
    "sharecore_store_maintenance_failures",
    "Failed attempts to complete a file of the journal, or to compact files; they are repeated.",
)
STORE_SEGMENTS = gauge("sharecore_store_segments", "Files of the journal.")
STORE_BYTES = gauge("sharecore_store_segment_bytes", "Bytes of record batches in these files.")
STORE_LIVE = gauge("sharecore_store_live_bytes", "Live bytes: record batches still reachable in a log.")
STORE_DAMAGED = gauge(
    "sharecore_store_damaged_batches",
    "Damaged record batches found on disk since the start; the log names them.",
)
STORE_STAGED = gauge("sharecore_store_staged_bytes", "Bytes waiting to be written.")
DISK_FREE = gauge("sharecore_store_disk_free_bytes", "Free space on the data directory's disk.")

TIER_NODES = gauge("sharecore_tier_nodes", "Live nodes of the tier, as seen by this node.")
TIER_SLOTS = gauge(
    "sharecore_tier_slots",
    "Slots of this node: `owned`, `claiming`, `awaited` from another node, or `given_up` for one.",
    "state",
)
TIER_CLAIM_TIME = histogram(
    "sharecore_tier_claim_seconds",
    "Time from a slot becoming free until this node has loaded its state and leads it.",
)
TIER_HAND_OVER_TIME = histogram(
    "sharecore_tier_hand_over_seconds",
    "Time of giving up a slot: until members have acknowledged its records and it is free.",
)
TIER_LOST = counter(
    "sharecore_tier_slots_lost",
    "Slots lost without a handover: another node claimed them, or a write has an unknown outcome.",
)
TIER_LEASE = gauge(
    "sharecore_tier_lease_seconds",
    "Time left in which this node may acquire records without another heartbeat to the cluster; 0: it "
    "acquires none.",
)
TIER_FETCHED = counter(
    "sharecore_tier_fetched_bytes", "Bytes of records fetched from the cluster for share partitions."
)
TIER_CACHE = gauge(
    "sharecore_tier_cache_bytes",
    "Cached bytes of records (limit: `sharecore.tier.cache.bytes`).",
)

CLIENT_INSTANCES = gauge(
    "kafka_server_client_metrics_instance_count",
    "Connected clients with a telemetry subscription (KIP-714).",
    kafka=("kafka.server:type=client-metrics:instance-count",),
)
CLIENT_UNKNOWN = counter(
    "kafka_server_client_metrics_unknown_subscription_request",
    "Pushes refused because the client's subscription was unknown or outdated.",
    kafka=(
        "kafka.server:type=client-metrics:unknown-subscription-request-count",
        "kafka.server:type=client-metrics:unknown-subscription-request-rate",
    ),
)
CLIENT_PUSHES = counter("sharecore_client_metrics_pushes", "Pushes of clients, by error.", "error")
CLIENT_SERIES = gauge("sharecore_client_metrics_series", "Series pushed by clients.")
CLIENT_SERIES_LEFT_OUT = gauge(
    "sharecore_client_metrics_series_left_out",
    "Values of the newest pushes without a series: beyond a limit (`sharecore.telemetry.series.max`, "
    "`sharecore.telemetry.client.series.max`), or of a kind that is not shown.",
)
CLIENT_INFO = gauge(
    "sharecore_client_info",
    "1: a client that pushes; with `group`, `client_rack`, `group_instance_id`, `group_member_id` and "
    "`transactional_id` if it reports them.",
    *ATTRIBUTES,
)

LOOP_DELAY = histogram(
    "sharecore_event_loop_delay_seconds",
    "Delay of the broker's event loop, sampled four times a second.",
)
SCRAPE_TIME = summary("sharecore_scrape_seconds", "CPU time of scrapes.")

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
        "coordinators have no event queue, they run on the broker's event loop: see "
        "`sharecore_event_loop_delay_seconds`"
    ),
    f"{_SHARE}:event-*, batch-*": "the same",
    f"{_SHARE}:thread-idle-ratio-min": "one thread: minimum and average are the same",
    f"{_GROUP}:streams-group-*": "streams groups are not supported",
    f"{_SHARE_PARTITION}FetchLockTimeMs, FetchLockRatio": "share partitions have no fetch lock",
    f"{_SHARE_GROUP}RequestTopicPartitionsFetchRatio, TopicPartitionsAcquireTimeMs": "the same",
    f"{_SHARE_PARTITION}InFlightBatchCount, InFlightBatchMessageCount": (
        "neighboring records with one state are stored together, across batches"
    ),
    "kafka.server:type=ShareSessionCache,name=ShareSessionEvictionsPerSec": (
        "sessions are not evicted; at the limit new ones are refused"
    ),
    f"{_REQUEST}RequestQueueTimeMs, ResponseQueueTimeMs, ResponseSendTimeMs": "no queues between threads",
    f"{_REQUEST}RemoteTimeMs": "total time less local time",
    f"{_REQUEST}ErrorsPerSec": "responses are not searched for errors of single partitions",
    "kafka.cluster:*, kafka.raft:*, replicas, controllers": "one broker: no replicas, no quorum",
}
"""Metrics of Kafka's without a counterpart, and why."""
