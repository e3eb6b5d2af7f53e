//! Written by `python -m tests.unit.protocol.messages` from Kafka's schemas.

/// Parts that requests and responses of several APIs have.
pub mod common {
    use crate::typed::structs::structs;

    structs! {
        struct AcknowledgementBatch<'a> {
            first_offset: i64 [1..=2] = 0;
            last_offset: i64 [1..=2] = 0;
            acknowledge_types: &'a [u8] [1..=2] = &[];
        }

        struct LeaderIdAndEpoch {
            leader_id: i32 [1..=2] = 0;
            leader_epoch: i32 [1..=2] = 0;
        }

        struct NodeEndpoint<'a> {
            node_id: i32 [1..=2] = 0;
            host: &'a str [1..=2] = "";
            port: i32 [1..=2] = 0;
            rack: Option<&'a str> [1..=2] = None;
        }
    }
}

/// The request and the response of `PRODUCE`.
pub mod produce {
    use crate::typed::Records;
    use crate::typed::structs::structs;

    structs! {
        struct ProduceRequest<'a> message 3..=13 flexible 9 {
            transactional_id: Option<&'a str> [3..=13] = None;
            acks: i16 [3..=13] = 0;
            timeout_ms: i32 [3..=13] = 0;
            topic_data: Vec<TopicProduceData<'a>> [3..=13] = Vec::new();
        }

        struct TopicProduceData<'a> {
            topic_id: [u8; 16] [13..=13] = [0; 16];
            name: &'a str [3..=12] = "";
            partition_data: Vec<PartitionProduceData<'a>> [3..=13] = Vec::new();
        }

        struct PartitionProduceData<'a> {
            index: i32 [3..=13] = 0;
            records: Records<'a> [3..=13] = Records::Null;
        }

        struct ProduceResponse<'a> message 3..=13 flexible 9 {
            responses: Vec<TopicProduceResponse<'a>> [3..=13] = Vec::new();
            throttle_time_ms: i32 [3..=13] = 0;
            node_endpoints: Vec<NodeEndpoint<'a>> [10..=13, tag 0] = Vec::new();
        }

        struct TopicProduceResponse<'a> {
            topic_id: [u8; 16] [13..=13] = [0; 16];
            name: &'a str [3..=12] = "";
            partition_responses: Vec<PartitionProduceResponse<'a>> [3..=13] = Vec::new();
        }

        struct PartitionProduceResponse<'a> {
            index: i32 [3..=13] = 0;
            error_code: i16 [3..=13] = 0;
            base_offset: i64 [3..=13] = 0;
            log_append_time_ms: i64 [3..=13] = -1;
            log_start_offset: i64 [5..=13] = -1;
            record_errors: Vec<BatchIndexAndErrorMessage<'a>> [8..=13] = Vec::new();
            error_message: Option<&'a str> [8..=13] = None;
            current_leader: LeaderIdAndEpoch [10..=13, tag 0] = LeaderIdAndEpoch::default();
        }

        struct BatchIndexAndErrorMessage<'a> {
            batch_index: i32 [8..=13] = 0;
            batch_index_error_message: Option<&'a str> [8..=13] = None;
        }

        struct LeaderIdAndEpoch {
            leader_id: i32 [10..=13] = -1;
            leader_epoch: i32 [10..=13] = -1;
        }

        struct NodeEndpoint<'a> {
            node_id: i32 [10..=13] = 0;
            host: &'a str [10..=13] = "";
            port: i32 [10..=13] = 0;
            rack: Option<&'a str> [10..=13] = None;
        }
    }
}

/// The request and the response of `SHARE_FETCH`.
pub mod share_fetch {
    pub use super::common::{AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint};
    use crate::typed::Records;
    use crate::typed::structs::structs;

    structs! {
        struct ShareFetchRequest<'a> message 1..=2 flexible 1 {
            group_id: Option<&'a str> [1..=2] = None;
            member_id: Option<&'a str> [1..=2] = Some("");
            share_session_epoch: i32 [1..=2] = 0;
            max_wait_ms: i32 [1..=2] = 0;
            min_bytes: i32 [1..=2] = 0;
            max_bytes: i32 [1..=2] = 2_147_483_647;
            max_records: i32 [1..=2] = 0;
            batch_size: i32 [1..=2] = 0;
            share_acquire_mode: i8 [2..=2] = 0;
            is_renew_ack: bool [2..=2] = false;
            topics: Vec<FetchTopic<'a>> [1..=2] = Vec::new();
            forgotten_topics_data: Vec<ForgottenTopic> [1..=2] = Vec::new();
        }

        struct FetchTopic<'a> {
            topic_id: [u8; 16] [1..=2] = [0; 16];
            partitions: Vec<FetchPartition<'a>> [1..=2] = Vec::new();
        }

        struct FetchPartition<'a> {
            partition_index: i32 [1..=2] = 0;
            acknowledgement_batches: Vec<AcknowledgementBatch<'a>> [1..=2] = Vec::new();
        }

        struct ForgottenTopic {
            topic_id: [u8; 16] [1..=2] = [0; 16];
            partitions: Vec<i32> [1..=2] = Vec::new();
        }

        struct ShareFetchResponse<'a> message 1..=2 flexible 1 {
            throttle_time_ms: i32 [1..=2] = 0;
            error_code: i16 [1..=2] = 0;
            error_message: Option<&'a str> [1..=2] = None;
            acquisition_lock_timeout_ms: i32 [1..=2] = 0;
            responses: Vec<ShareFetchableTopicResponse<'a>> [1..=2] = Vec::new();
            node_endpoints: Vec<NodeEndpoint<'a>> [1..=2] = Vec::new();
        }

        struct ShareFetchableTopicResponse<'a> {
            topic_id: [u8; 16] [1..=2] = [0; 16];
            partitions: Vec<PartitionData<'a>> [1..=2] = Vec::new();
        }

        struct PartitionData<'a> {
            partition_index: i32 [1..=2] = 0;
            error_code: i16 [1..=2] = 0;
            error_message: Option<&'a str> [1..=2] = None;
            acknowledge_error_code: i16 [1..=2] = 0;
            acknowledge_error_message: Option<&'a str> [1..=2] = None;
            current_leader: LeaderIdAndEpoch [1..=2] = LeaderIdAndEpoch::default();
            records: Records<'a> [1..=2] = Records::Null;
            acquired_records: Vec<AcquiredRecords> [1..=2] = Vec::new();
        }

        struct AcquiredRecords {
            first_offset: i64 [1..=2] = 0;
            last_offset: i64 [1..=2] = 0;
            delivery_count: i16 [1..=2] = 0;
        }
    }
}

/// The request and the response of `SHARE_ACKNOWLEDGE`.
pub mod share_acknowledge {
    pub use super::common::{AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint};
    use crate::typed::structs::structs;

    structs! {
        struct ShareAcknowledgeRequest<'a> message 1..=2 flexible 1 {
            group_id: Option<&'a str> [1..=2] = None;
            member_id: Option<&'a str> [1..=2] = Some("");
            share_session_epoch: i32 [1..=2] = 0;
            is_renew_ack: bool [2..=2] = false;
            topics: Vec<AcknowledgeTopic<'a>> [1..=2] = Vec::new();
        }

        struct AcknowledgeTopic<'a> {
            topic_id: [u8; 16] [1..=2] = [0; 16];
            partitions: Vec<AcknowledgePartition<'a>> [1..=2] = Vec::new();
        }

        struct AcknowledgePartition<'a> {
            partition_index: i32 [1..=2] = 0;
            acknowledgement_batches: Vec<AcknowledgementBatch<'a>> [1..=2] = Vec::new();
        }

        struct ShareAcknowledgeResponse<'a> message 1..=2 flexible 1 {
            throttle_time_ms: i32 [1..=2] = 0;
            error_code: i16 [1..=2] = 0;
            error_message: Option<&'a str> [1..=2] = None;
            acquisition_lock_timeout_ms: i32 [2..=2] = 0;
            responses: Vec<ShareAcknowledgeTopicResponse<'a>> [1..=2] = Vec::new();
            node_endpoints: Vec<NodeEndpoint<'a>> [1..=2] = Vec::new();
        }

        struct ShareAcknowledgeTopicResponse<'a> {
            topic_id: [u8; 16] [1..=2] = [0; 16];
            partitions: Vec<PartitionData<'a>> [1..=2] = Vec::new();
        }

        struct PartitionData<'a> {
            partition_index: i32 [1..=2] = 0;
            error_code: i16 [1..=2] = 0;
            error_message: Option<&'a str> [1..=2] = None;
            current_leader: LeaderIdAndEpoch [1..=2] = LeaderIdAndEpoch::default();
        }
    }
}
