//! A broker's decisions about Produce requests, without I/O.
//!
//! Permissions, logs and time are arguments; the store validates batches against their log and appends them.
#![forbid(unsafe_code)]

mod answer;
mod check;
mod contents;
mod planted;
mod request;

pub use answer::{Answer, Appended, Place, Refused};
pub use check::{Check, Checks};
pub use contents::{Contents, Part};
#[cfg(feature = "planted")]
pub use planted::plant;
pub use planted::{Bug, is_planted};
pub use request::{
    Batches, Terms, TopicName, any_transactional, each_once, has_zstd, is_transactional, topics,
};
