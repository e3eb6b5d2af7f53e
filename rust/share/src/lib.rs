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
mod interest;
mod leadership;
mod look;
mod maps;
mod outcomes;
mod planted;
mod rations;
mod session;
mod staging;
mod tally;
mod writes;

pub use acknowledgements::{Claim, Places, Refused, Walked, are_sound, batches_of, walk};
pub use alarm::{Alarm, Deadlines, Due};
pub use answer::{Answer, Node, Refusal, is_unwritten, redirects};
pub use epoch::{FINAL_EPOCH, INITIAL_EPOCH, Unexpected, next_epoch};
pub use fetch::{Invalid, Limits, Wanted};
pub use gather::{Given, Partitions, Readiness, gather, next_ready};
pub use interest::Interest;
pub use leadership::lost_partitions;
pub use look::{Look, Seen, Sight, last_look, look};
pub use maps::{IdMap, IdSet};
pub use outcomes::{OperationEnd, Outcomes};
#[cfg(feature = "planted")]
pub use planted::plant;
pub use planted::{Bug, is_planted};
pub use rations::{Ration, Rations};
pub use session::{Place, Session, Walk};
pub use staging::{Mend, Number, Staging};
pub use tally::{DELIVERIES, Sum, TYPES, Tally};
pub use writes::{Unwritten, Writes, settles_for_good};

/// Topic id and partition.
pub type PartitionId = ([u8; 16], i32);
