//! Rows of share state as columns in Arrow's memory layout.
//!
//! Numbers are in this machine's byte order. Missing values (a tombstone has no state, an update no state epoch) are
//! zeros with a null bit.

use sharecore_records::columns::{Binary, Validity};

use crate::{
    key::Key,
    value::{Batch, Head},
};

/// Rows in progress are returned at this size, however many were requested.
const BYTES_MAX: usize = 64 << 20;
/// Approximate memory of a row besides texts and state batches.
const ROW_BYTES: usize = 100;
/// Memory of a state batch.
const BATCH_BYTES: usize = 8 + 8 + 1 + 2;

/// The type of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A record that holds the whole state.
    Snapshot,
    /// A record that holds changes.
    Update,
    /// A record that deletes the state.
    Tombstone,
    /// The final state of a share partition.
    Live,
    /// An unreadable record or batch.
    Unreadable,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Update => "update",
            Self::Tombstone => "tombstone",
            Self::Live => "live",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Offset in the partition of the state topic.
    pub offset: i64,
    /// Milliseconds since the epoch; `None` for an unreadable batch.
    pub timestamp: Option<i64>,
    /// The type.
    pub kind: Type,
    /// The share partition, if known.
    pub key: Option<Key<'a>>,
    /// The state.
    pub state: Option<(Head, &'a [Batch])>,
    /// Why it is unreadable.
    pub error: Option<&'a str>,
}

/// Rows as columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Number of rows.
    pub rows: usize,
    /// Offsets in the partition of the state topic, `i64`.
    pub offsets: Vec<u8>,
    /// Microseconds since the epoch, `i64`.
    pub timestamps: Vec<u8>,
    /// Which timestamps are known.
    pub timed: Validity,
    /// Types of the rows, by name.
    pub types: Binary,
    /// Share groups.
    pub groups: Binary,
    /// Topic ids as Kafka prints them.
    pub topic_ids: Binary,
    /// Partitions of the topics, `i32`.
    pub partitions: Vec<u8>,
    /// Which rows have a state.
    pub stated: Validity,
    /// Snapshot epochs, `i32`.
    pub snapshot_epochs: Vec<u8>,
    /// State epochs, `i32`.
    pub state_epochs: Vec<u8>,
    /// Which rows have a state epoch and the two times.
    pub whole: Validity,
    /// Leader epochs, `i32`.
    pub leader_epochs: Vec<u8>,
    /// Start offsets, `i64`.
    pub start_offsets: Vec<u8>,
    /// Delivery-complete counts, `i32`.
    pub delivery_complete_counts: Vec<u8>,
    /// Creation times of the states, microseconds, `i64`.
    pub created: Vec<u8>,
    /// Write times of the states, microseconds, `i64`.
    pub written: Vec<u8>,
    /// Start index of each row's state batches, `i32`; one more entry than rows.
    pub batches: Vec<u8>,
    /// First offsets of the state batches, `i64`.
    pub firsts: Vec<u8>,
    /// Last offsets of the state batches, `i64`.
    pub lasts: Vec<u8>,
    /// Delivery states, `i8`.
    pub states: Vec<u8>,
    /// Delivery counts, `i16`.
    pub delivery_counts: Vec<u8>,
    /// Why rows are unreadable.
    pub errors: Binary,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            rows: 0,
            offsets: Vec::new(),
            timestamps: Vec::new(),
            timed: Validity::default(),
            types: Binary::default(),
            groups: Binary::default(),
            topic_ids: Binary::default(),
            partitions: Vec::new(),
            stated: Validity::default(),
            snapshot_epochs: Vec::new(),
            state_epochs: Vec::new(),
            whole: Validity::default(),
            leader_epochs: Vec::new(),
            start_offsets: Vec::new(),
            delivery_complete_counts: Vec::new(),
            created: Vec::new(),
            written: Vec::new(),
            batches: 0_i32.to_ne_bytes().to_vec(),
            firsts: Vec::new(),
            lasts: Vec::new(),
            states: Vec::new(),
            delivery_counts: Vec::new(),
            errors: Binary::default(),
        }
    }
}

impl Columns {
    /// Adds a row.
    pub fn push(&mut self, row: &Row<'_>) {
        put(&mut self.offsets, row.offset.to_ne_bytes());
        put(
            &mut self.timestamps,
            microseconds(row.timestamp.unwrap_or_default()),
        );
        self.timed.push(row.timestamp.is_some());
        self.types.push(Some(row.kind.name().as_bytes()));
        self.push_key(row.key.as_ref());
        match row.state {
            Some((head, batches)) => self.push_state(&head, batches),
            None => self.push_stateless(),
        }
        self.errors.push(row.error.map(str::as_bytes));
        self.rows += 1;
    }

    fn push_key(&mut self, key: Option<&Key<'_>>) {
        self.groups.push(key.map(|key| key.group.as_bytes()));
        let topic_id = key.map(Key::topic_id_text);
        self.topic_ids
            .push(topic_id.as_ref().map(<[u8; 22]>::as_slice));
        let partition = key.map_or(0, |key| key.partition);
        put(&mut self.partitions, partition.to_ne_bytes());
    }

    fn push_state(&mut self, head: &Head, batches: &[Batch]) {
        self.push_head(head);
        self.stated.push(true);
        for batch in batches {
            put(&mut self.firsts, batch.first.to_ne_bytes());
            put(&mut self.lasts, batch.last.to_ne_bytes());
            put(&mut self.states, batch.state.to_ne_bytes());
            put(
                &mut self.delivery_counts,
                batch.delivery_count.to_ne_bytes(),
            );
        }
        put(&mut self.batches, (self.states.len() as i32).to_ne_bytes());
    }

    fn push_stateless(&mut self) {
        self.push_head(&Head {
            snapshot_epoch: 0,
            state_epoch: None,
            leader_epoch: 0,
            start_offset: 0,
            delivery_complete_count: 0,
            times: None,
        });
        self.stated.push(false);
        put(&mut self.batches, (self.states.len() as i32).to_ne_bytes());
    }

    fn push_head(&mut self, head: &Head) {
        let (created, written) = head.times.unwrap_or_default();
        self.whole.push(head.state_epoch.is_some());
        put(&mut self.snapshot_epochs, head.snapshot_epoch.to_ne_bytes());
        let state_epoch = head.state_epoch.unwrap_or_default();
        put(&mut self.state_epochs, state_epoch.to_ne_bytes());
        put(&mut self.leader_epochs, head.leader_epoch.to_ne_bytes());
        put(&mut self.start_offsets, head.start_offset.to_ne_bytes());
        put(
            &mut self.delivery_complete_counts,
            head.delivery_complete_count.to_ne_bytes(),
        );
        put(&mut self.created, microseconds(created));
        put(&mut self.written, microseconds(written));
    }

    /// Whether there are `rows_max` rows, or enough bytes.
    pub(crate) fn is_full(&self, rows_max: usize) -> bool {
        let text = self.groups.data.len() + self.errors.data.len();
        let bytes = self.rows * ROW_BYTES + self.states.len() * BATCH_BYTES + text;
        self.rows >= rows_max || bytes >= BYTES_MAX
    }
}

fn put<const N: usize>(column: &mut Vec<u8>, number: [u8; N]) {
    column.extend_from_slice(&number);
}

fn microseconds(milliseconds: i64) -> [u8; 8] {
    milliseconds.saturating_mul(1000).to_ne_bytes()
}
