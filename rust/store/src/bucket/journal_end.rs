//! Where a restore has found the end of the journal, so that the store that opens the directory reads on from there.

use super::copy::Copied;

/// The end of the journal, as a restore has found it.
///
/// It says what lies before a place, which no later write changes. Whether the place is still free, and whether the
/// directory may continue there, is checked by the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEnd {
    /// The newest checkpoint: its place and epoch. Its successors may cover more, and sweep what they cover.
    pub(super) checkpoint: Option<(u64, u32)>,
    pub(super) copied: Box<Copied>,
}
