//! The records of `__share_group_state` (KIP-932, "Share coordinator"): `ShareSnapshot` and `ShareUpdate`, read out of
//! record batches into columns in Arrow's memory layout.
//!
//! Two views: [`history`] gives one row per record, [`Live`] folds the records of one partition of the topic into the
//! states that hold in the end. Nothing here trusts a byte: what cannot be read becomes a row that says why, never a
//! panic.
#![forbid(unsafe_code)]

mod columns;
mod fault;
mod history;
mod key;
mod live;
mod value;
mod walk;

pub use columns::{Columns, Row, Type};
pub use fault::RecordFault;
pub use history::{History, history};
pub use key::Key;
pub use live::Live;
pub use value::{Batch, Head, Kind, read_value};
pub use walk::{Options, Unreadable};
