//! The Kafka error codes that the binding returns; `sharecore.errors.ErrorCode` has all of them.

pub(crate) const UNKNOWN_SERVER_ERROR: i16 = -1;
pub(crate) const OFFSET_OUT_OF_RANGE: i16 = 1;
pub(crate) const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
pub(crate) const NOT_LEADER_OR_FOLLOWER: i16 = 6;
pub(crate) const INVALID_REQUEST: i16 = 42;
pub(crate) const INVALID_RECORD_STATE: i16 = 121;
pub(crate) const SHARE_SESSION_NOT_FOUND: i16 = 122;
pub(crate) const INVALID_SHARE_SESSION_EPOCH: i16 = 123;
