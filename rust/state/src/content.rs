//! What the records of one share partition say: the one place that knows what a snapshot and an update mean.

use sharecore_engine::{RecordState, StateBatch, combine};

use crate::{
    fault::RecordFault,
    packed::Packed,
    value::{Batch, Head, Kind, read_value},
};

/// State batches of updates are combined with those before once there are this many, or a quarter of those before.
const MERGE_FROM: usize = 32;

/// A number that is not known, or an update's start offset that leaves the one before.
const UNINITIALIZED: i32 = -1;

/// The state of a share partition.
#[derive(Debug, Clone)]
pub struct Content {
    head: Head,
    fence_epoch: i32,
    updates: u32,
    combined: Packed,
    fresh: Vec<StateBatch>,
}

impl Default for Content {
    /// A share partition that no record tells of.
    fn default() -> Self {
        Self {
            head: Head {
                snapshot_epoch: UNINITIALIZED,
                state_epoch: Some(0),
                leader_epoch: 0,
                start_offset: UNINITIALIZED.into(),
                delivery_complete_count: UNINITIALIZED,
                times: Some((0, 0)),
            },
            fence_epoch: 0,
            updates: 0,
            combined: Packed::default(),
            fresh: Vec::new(),
        }
    }
}

impl Content {
    /// Applies the value of a record; one that cannot be read changes nothing.
    pub fn replay(&mut self, kind: Kind, value: &[u8]) -> Result<(), RecordFault> {
        let mut batches = Vec::new();
        let head = read(kind, value, &mut batches)?;
        self.apply(kind, head, &batches);
        Ok(())
    }

    /// Applies what [`read`] has read.
    pub(crate) fn apply(&mut self, kind: Kind, head: Head, batches: &[Batch]) {
        match kind {
            Kind::Snapshot => self.snapshot(head, batches),
            Kind::Update => self.update(&head, batches),
        }
    }

    /// Numbers of the last snapshot and of the updates behind it.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The highest leader epoch that was ever seen.
    pub fn fence_epoch(&self) -> i32 {
        self.fence_epoch
    }

    /// Updates since the last snapshot.
    pub fn updates(&self) -> u32 {
        self.updates
    }

    /// Counts the updates since the last snapshot anew, from `updates` on.
    pub fn set_updates(&mut self, updates: u32) {
        self.updates = updates;
    }

    /// The state batches from the start offset on, ascending, apart.
    pub fn batches(&mut self) -> Vec<StateBatch> {
        self.merge()
    }

    fn snapshot(&mut self, head: Head, batches: &[Batch]) {
        self.fence_epoch = self.fence_epoch.max(head.leader_epoch);
        self.head = head;
        self.updates = 0;
        self.combined = Packed::default();
        self.fresh.clear();
        self.fresh.extend(batches.iter().map(known));
        if self.fresh.len() > MERGE_FROM {
            self.merge();
        }
    }

    fn update(&mut self, new: &Head, batches: &[Batch]) {
        let head = &mut self.head;
        head.leader_epoch = head.leader_epoch.max(new.leader_epoch);
        self.fence_epoch = self.fence_epoch.max(new.leader_epoch);
        if new.start_offset != i64::from(UNINITIALIZED) {
            head.start_offset = new.start_offset;
        }
        head.delivery_complete_count = new.delivery_complete_count;
        self.updates += 1;
        self.fresh.extend(batches.iter().map(known));
        if self.fresh.len() > MERGE_FROM.max(self.combined.len() / 4) {
            self.merge();
        }
    }

    /// Moves everything into `combined`, and returns it.
    fn merge(&mut self) -> Vec<StateBatch> {
        let start = Some(self.head.start_offset).filter(|start| *start >= 0);
        let mut out = Vec::new();
        combine(&self.combined.unpack(), &self.fresh, start, &mut out);
        self.combined = Packed::new(&out);
        self.fresh = Vec::new();
        out
    }
}

/// Reads a value whose state batches are all possible ones.
pub(crate) fn read(kind: Kind, value: &[u8], room: &mut Vec<Batch>) -> Result<Head, RecordFault> {
    let head = read_value(kind, value, room)?;
    if room.iter().all(possible) {
        Ok(head)
    } else {
        Err(RecordFault::StateBatch)
    }
}

fn possible(batch: &Batch) -> bool {
    let state = RecordState::from_id(batch.state.cast_unsigned());
    state.is_some() && batch.first >= 0 && batch.last >= batch.first && batch.delivery_count >= 0
}

/// A batch that is [`possible`].
fn known(batch: &Batch) -> StateBatch {
    StateBatch {
        first: batch.first,
        last: batch.last,
        state: RecordState::from_id(batch.state.cast_unsigned()).expect("a possible batch"),
        delivery_count: batch.delivery_count.cast_unsigned(),
    }
}
