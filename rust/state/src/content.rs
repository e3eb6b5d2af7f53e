//! The state of one share partition, built from its records: the one place that knows what a snapshot and an update
//! mean.

use sharecore_engine::{Combiner, RecordState, StateBatch, state_batch::is_range};

use crate::{
    fault::RecordFault,
    packed::Packed,
    value::{Batch, Head, Kind, read_value, write_value},
};

/// State batches of updates are merged with earlier ones once there are this many, or a quarter of the earlier ones.
const MERGE_FROM: usize = 32;

/// Means unknown or, for an update's start offset, unchanged.
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

/// A change to write; no part of it is below its start offset.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The new start offset; ignored if lower than the current one.
    pub start_offset: i64,
    /// Acknowledged and archived records from there.
    pub delivery_complete_count: i32,
    /// The new leader epoch, higher than before; `None` keeps it.
    pub leader_epoch: Option<i32>,
    /// Changed batches, ascending, without overlaps.
    pub batches: &'a [StateBatch],
}

impl Default for Content {
    /// A share partition without records.
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
    /// Applies the value of a record; an unreadable one changes nothing.
    pub fn replay(&mut self, kind: Kind, value: &[u8]) -> Result<(), RecordFault> {
        let mut batches = Vec::new();
        let head = read(kind, value, &mut batches)?;
        self.apply(kind, head, &batches);
        Ok(())
    }

    /// Applies the result of [`read`].
    pub(crate) fn apply(&mut self, kind: Kind, head: Head, batches: &[Batch]) {
        match kind {
            Kind::Snapshot => self.take_snapshot(head, batches.iter().map(known)),
            Kind::Update => self.take_update(&head, batches.iter().map(known)),
        }
    }

    /// Numbers of the last snapshot and the updates after it.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The highest leader epoch seen.
    pub fn fence_epoch(&self) -> i32 {
        self.fence_epoch
    }

    /// Updates since the last snapshot.
    pub fn updates(&self) -> u32 {
        self.updates
    }

    /// The state batches from the start offset, ascending, without overlaps.
    pub fn batches(&mut self) -> Vec<StateBatch> {
        self.merge()
    }

    /// How many records were delivered this often and wait for redelivery.
    pub fn waiting(&mut self, deliveries: u32) -> i64 {
        if self.combined.len() == 0 && self.fresh.is_empty() {
            return 0;
        }
        let start = self.head.start_offset;
        let batches = self.merge();
        let waiting = batches
            .iter()
            .filter(|batch| batch.state == RecordState::Available)
            .filter(|batch| u32::from(batch.delivery_count) >= deliveries && batch.last >= start);
        waiting
            .map(|batch| batch.last - batch.first.max(start) + 1)
            .sum()
    }

    /// Resets the state to a start offset (-1: unknown); returns the snapshot to write.
    ///
    /// As in Kafka, only a snapshot that was due resets the count of updates.
    pub fn begin(
        &mut self,
        state_epoch: i32,
        start_offset: i64,
        now_ms: i64,
        updates_per_snapshot: u32,
    ) -> Vec<u8> {
        let updates = Some(self.updates).filter(|updates| *updates < updates_per_snapshot);
        let known = start_offset != i64::from(UNINITIALIZED);
        let head = Head {
            snapshot_epoch: self.head.snapshot_epoch.wrapping_add(1),
            state_epoch: Some(state_epoch),
            leader_epoch: 0,
            start_offset,
            delivery_complete_count: if known { 0 } else { UNINITIALIZED },
            times: Some((now_ms, now_ms)),
        };
        self.take_snapshot(head, std::iter::empty());
        self.updates = updates.unwrap_or_default();
        write_value(&head, &[])
    }

    /// Applies a change; returns the record to write: an update, or a snapshot once there were this many updates since
    /// the last one.
    ///
    /// The start offset never decreases; neither does the count for the same start offset.
    pub fn write(
        &mut self,
        change: &Change<'_>,
        now_ms: i64,
        updates_per_snapshot: u32,
    ) -> (Kind, Vec<u8>) {
        let (mut start, mut count) = (change.start_offset, change.delivery_complete_count);
        // an outdated write must not undo a later one
        if start < self.head.start_offset {
            (start, count) = (self.head.start_offset, self.head.delivery_complete_count);
        } else if start == self.head.start_offset {
            count = count.max(self.head.delivery_complete_count);
        }
        let head = Head {
            snapshot_epoch: self.head.snapshot_epoch,
            state_epoch: None,
            leader_epoch: change.leader_epoch.unwrap_or(self.head.leader_epoch),
            start_offset: start,
            delivery_complete_count: count,
            times: None,
        };
        let due = self.updates >= updates_per_snapshot;
        self.take_update(&head, change.batches.iter().copied());
        if due {
            // as in Kafka, a snapshot that is due resets the creation time
            (Kind::Snapshot, self.snapshot(now_ms, now_ms))
        } else {
            (Kind::Update, write_value(&head, change.batches))
        }
    }

    /// The record that makes all earlier ones redundant.
    pub fn snapshot(&mut self, now_ms: i64, create_ms: i64) -> Vec<u8> {
        let batches = self.merge();
        let head = Head {
            snapshot_epoch: self.head.snapshot_epoch.wrapping_add(1),
            times: Some((create_ms, now_ms)),
            ..self.head
        };
        let value = write_value(&head, &batches);
        self.take_snapshot(head, batches.into_iter());
        value
    }

    fn take_snapshot(&mut self, head: Head, batches: impl Iterator<Item = StateBatch>) {
        self.fence_epoch = self.fence_epoch.max(head.leader_epoch);
        self.head = head;
        self.updates = 0;
        self.combined = Packed::default();
        self.fresh.clear();
        self.fresh.extend(batches);
        if self.fresh.len() > MERGE_FROM {
            self.merge();
        }
    }

    fn take_update(&mut self, new: &Head, batches: impl Iterator<Item = StateBatch>) {
        let head = &mut self.head;
        head.leader_epoch = head.leader_epoch.max(new.leader_epoch);
        self.fence_epoch = self.fence_epoch.max(new.leader_epoch);
        if new.start_offset != i64::from(UNINITIALIZED) {
            head.start_offset = new.start_offset;
        }
        head.delivery_complete_count = new.delivery_complete_count;
        self.updates += 1;
        self.fresh.extend(batches);
        if self.fresh.len() > MERGE_FROM.max(self.combined.len() / 4) {
            self.merge();
        }
    }

    /// Merges all batches into `combined`, and returns them.
    fn merge(&mut self) -> Vec<StateBatch> {
        let start = Some(self.head.start_offset).filter(|start| *start >= 0);
        let mut room = Combiner::default();
        let combined = room.combine(&self.combined.unpack(), &self.fresh, start);
        self.combined = Packed::new(combined);
        self.fresh = Vec::new();
        combined.to_vec()
    }
}

/// Reads a value; all its state batches must be valid.
pub(crate) fn read(kind: Kind, value: &[u8], room: &mut Vec<Batch>) -> Result<Head, RecordFault> {
    let head = read_value(kind, value, room)?;
    if room.iter().all(is_possible) {
        Ok(head)
    } else {
        Err(RecordFault::StateBatch)
    }
}

/// As [`read`], but repairs invalid state batches; returns their number as well.
///
/// Kafka's coordinator accepts any number as a delivery state. One such batch must not disable the share partition, or
/// all others in the same partition of the state topic: its records are delivered again, which loses nothing.
pub(crate) fn read_repaired(
    kind: Kind,
    value: &[u8],
    room: &mut Vec<Batch>,
) -> Result<(Head, usize), RecordFault> {
    let head = read_value(kind, value, room)?;
    let repaired = room.iter().filter(|batch| !is_possible(batch)).count();
    if repaired > 0 {
        room.retain(|batch| is_range(batch.first, batch.last));
        for batch in room.iter_mut().filter(|batch| !is_possible(batch)) {
            batch.state = RecordState::Available.id().cast_signed();
            batch.delivery_count = batch.delivery_count.max(0);
        }
    }
    Ok((head, repaired))
}

fn is_possible(batch: &Batch) -> bool {
    let state = RecordState::from_id(batch.state.cast_unsigned());
    state.is_some() && is_range(batch.first, batch.last) && batch.delivery_count >= 0
}

/// A batch that [`is_possible`].
fn known(batch: &Batch) -> StateBatch {
    StateBatch {
        first: batch.first,
        last: batch.last,
        state: RecordState::from_id(batch.state.cast_unsigned()).expect("a possible batch"),
        delivery_count: batch.delivery_count.cast_unsigned(),
    }
}
