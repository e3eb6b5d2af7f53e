//! The engine of a share partition (KIP-932): in-flight records as runs of offsets.
//!
//! Sans-I/O: no clock, no lock, no thread, no randomness. Time is an argument in milliseconds.
#![forbid(unsafe_code)]

mod combine;
mod error;
mod inflight;
mod managed;
mod offset;
mod partition;
mod record_state;
mod slab;
pub mod state_batch;
pub mod timer;
mod unaligned;

pub use combine::Combiner;
pub use error::{Refusal, RefusalKind};
#[cfg(feature = "planted")]
pub use managed::plant;
pub use managed::{
    Backoff, Bug, Engine, Entry, Key, KeyDetails, Managed, Order, Rules, Spec, Waiting, is_planted,
};
pub use offset::{Offset, OffsetRange};
pub use partition::{
    AckBatch, AcquireOptions, Acquired, Config, DeadLetter, DeadLetterCause, HeldRun, InFlightRun,
    Partition, StateBatch, Write,
};
pub use record_state::{AckType, RecordState};
