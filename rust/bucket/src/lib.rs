//! What sharecore keeps in a bucket, and the protocol by which one broker at a time writes it.
//!
//! Everything here is sans-I/O: it takes answers and the time, and returns calls for a transport to carry out. The one
//! operation that safety rests on is creating an object whose name is free ([`What::Create`]). Nothing here reads a
//! clock, opens a connection or starts a thread.
#![forbid(unsafe_code)]

mod call;
mod memory;
pub mod names;

pub use call::{Answer, Body, Bucket, Call, What};
pub use memory::MemoryBucket;
