//! A broker's decisions about Produce requests, without I/O.
//!
//! Permissions, logs and time are arguments; the store validates batches against their log and appends them.
#![forbid(unsafe_code)]

mod answer;
mod request;

pub use answer::{Answer, Appended, Place, Refused};
pub use request::{
    Batches, TopicName, any_transactional, each_once, has_zstd, is_transactional, topics,
};
