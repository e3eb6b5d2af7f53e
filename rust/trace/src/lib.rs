//! Recorded operations on share partitions: read, replayed, timed.
//!
//! A trace is a file of JSON lines, one operation each; `init` creates a new partition.
#![forbid(unsafe_code)]

mod bench;
mod op;
mod replay;

pub use bench::{Timing, bench};
pub use op::{Op, read};
pub use replay::Replay;
