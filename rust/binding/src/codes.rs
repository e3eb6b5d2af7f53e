//! Kafka's error codes, as far as the binding answers with them; `sharecore.errors.ErrorCode` has all.

pub(crate) const UNKNOWN_SERVER_ERROR: i16 = -1;
pub(crate) const OFFSET_OUT_OF_RANGE: i16 = 1;
pub(crate) const CORRUPT_MESSAGE: i16 = 2;
pub(crate) const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
pub(crate) const NOT_LEADER_OR_FOLLOWER: i16 = 6;
pub(crate) const REQUEST_TIMED_OUT: i16 = 7;
pub(crate) const MESSAGE_TOO_LARGE: i16 = 10;
pub(crate) const COORDINATOR_NOT_AVAILABLE: i16 = 15;
pub(crate) const INVALID_REQUIRED_ACKS: i16 = 21;
pub(crate) const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
pub(crate) const INVALID_REQUEST: i16 = 42;
pub(crate) const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i16 = 53;
pub(crate) const KAFKA_STORAGE_ERROR: i16 = 56;
pub(crate) const FENCED_LEADER_EPOCH: i16 = 74;
pub(crate) const UNKNOWN_TOPIC_ID: i16 = 100;
pub(crate) const INVALID_RECORD_STATE: i16 = 121;
pub(crate) const SHARE_SESSION_NOT_FOUND: i16 = 122;
pub(crate) const INVALID_SHARE_SESSION_EPOCH: i16 = 123;
