//! What a broker decides about requests of share groups (KIP-932): input in, decisions out.
//!
//! Time, rights, connections and logs are handed in as arguments; nothing here waits or writes.
#![forbid(unsafe_code)]

mod acknowledgements;
mod alarm;
mod answer;
mod epoch;
mod fetch;
mod gather;
mod look;
mod rations;
mod session;
mod writes;

pub use acknowledgements::{Claim, Refused, are_sound, batches_of, last_of_each, refusal};
pub use alarm::{Alarm, Deadlines, Due};
pub use answer::{Answer, Node, Refusal, is_unwritten, redirects};
pub use epoch::{FINAL_EPOCH, INITIAL_EPOCH, Unexpected, next_epoch};
pub use fetch::{Invalid, Limits, Wanted};
pub use gather::{Given, Partitions, Readiness, gather, next_ready};
pub use look::{Look, Seen};
pub use rations::{Ration, Rations};
pub use session::{Place, Session, Walk};
pub use writes::Writes;

/// Topic id and partition.
pub type PartitionId = ([u8; 16], i32);
