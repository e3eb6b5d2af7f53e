//! The records of `__share_group_state` (KIP-932, "Share coordinator"): `ShareSnapshot` and `ShareUpdate`, read out of
//! record batches into columns in Arrow's memory layout.
//!
//! [`Fold`] has what holds in the end of one partition of the topic; a broker that starts reads it so. Two views are for
//! those who analyse: [`history`] gives one row per record, [`Live`] one per state of a fold. Nothing here trusts a byte:
//! what cannot be read becomes an error or a row that says why, never a panic.
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
