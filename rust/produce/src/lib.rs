//! What a broker decides about Produce requests: input in, decisions out.
//!
//! Rights, logs and time are handed in as arguments; the store checks batches against their log and appends them.
#![forbid(unsafe_code)]

mod answer;
mod request;

pub use answer::{Answer, Appended, Place, Refused};
pub use request::{
    Batches, TopicName, any_transactional, each_once, has_zstd, is_transactional, topics,
};
