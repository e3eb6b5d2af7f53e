//! The records of `__share_group_state` (KIP-932, "Share coordinator"): `ShareSnapshot` and `ShareUpdate`, read out of
//! record batches into columns in Arrow's memory layout.
//!
//! [`Fold`] holds the final states of one partition of the topic; a starting broker uses it. Two views serve analysis:
//! [`history`] returns one row per record, [`Live`] one per state of a fold. No input is trusted: unreadable data
//! becomes an error or a row with the reason, never a panic.
#![forbid(unsafe_code)]

mod columns;
mod content;
mod fault;
mod fold;
mod history;
mod key;
mod live;
mod packed;
mod value;
mod walk;

pub use columns::{Columns, Row, Type};
pub use content::{Change, Content};
pub use fault::RecordFault;
pub use fold::{Fold, Folded};
pub use history::{History, history};
pub use key::Key;
pub use live::Live;
pub use value::{Batch, Head, Kind, read_value, write_value};
pub use walk::{Options, Unreadable};
