//! The engine behind a C ABI.
//!
//! A partition is a number that refers to a slot in a table, never an address: a null, freed or unknown one is refused
//! safely. No panic crosses the boundary; after one, the partition only returns errors. The caller owns all memory:
//! results are written to its arrays.
#![allow(
    clippy::doc_markdown,
    reason = "this text becomes a C header, where names have no backquotes"
)]

mod dead_letter;
mod guard;
mod handle;
mod inspect;
mod lease;
mod life;
mod managed;
mod memory;
mod status;
mod types;
mod waiting_details;
mod write;

pub use dead_letter::{sharecore_finish_archiving, sharecore_take_dead_letters};
pub use handle::SharecorePartition;
pub use inspect::{sharecore_check, sharecore_inflight, sharecore_inspect};
pub use lease::{sharecore_acknowledge, sharecore_acquire, sharecore_acquired, sharecore_release};
pub use life::{
    sharecore_config_default, sharecore_configure, sharecore_create, sharecore_free, sharecore_load,
};
pub use managed::{
    SharecoreEntry, SharecoreRules, SharecoreWaiting, SharecoreWanted, sharecore_admit,
    sharecore_advance_at, sharecore_commit_at, sharecore_create_managed, sharecore_load_managed,
    sharecore_rules_default, sharecore_set_rules, sharecore_waiting, sharecore_wanted,
};
pub use status::{SharecoreStatus, sharecore_last_error};
pub use types::{
    SharecoreAcknowledgement, SharecoreAcquired, SharecoreConfig, SharecoreDeadLetter,
    SharecoreFetch, SharecoreRange, SharecoreState, SharecoreStateBatch, SharecoreWrite,
};
pub use waiting_details::{
    SharecoreKey, SharecoreWaitingDetails, sharecore_keep_locks, sharecore_keys,
    sharecore_waiting_details,
};
pub use write::{
    sharecore_advance, sharecore_archive, sharecore_combine, sharecore_commit,
    sharecore_move_log_start, sharecore_pass_hole, sharecore_rollback, sharecore_write_batches,
};
