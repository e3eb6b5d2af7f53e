//! The records of one partition of the topic, folded into the states that hold in the end.
//!
//! All records about a share partition lie in one partition of the topic, so each of these is folded alone.

use std::collections::HashMap;

use sharecore_engine::{RecordState, StateBatch, combine};
use sharecore_records::Record;

use crate::{
    columns::{Columns, Row, Type},
    fault::RecordFault,
    key::{Key, split_kind},
    value::{Batch, Head, Kind, read_value},
    walk::{Options, Sink, Unreadable, walk},
};

/// State batches of updates are combined with those before once there are this many, or as many as those before.
const MERGE_FROM: usize = 256;

/// An update that leaves the start offset as it was.
const UNINITIALIZED: i64 = -1;

/// Folds records; the states come out at the end.
#[derive(Debug)]
pub struct Live {
    options: Options,
    keep: bool,
    /// By what follows the type in a key.
    states: HashMap<Box<[u8]>, State>,
    unreadable: Columns,
    unreadable_max: usize,
    /// Unreadable things that there was no room for.
    lost: usize,
    first_unreadable: Option<Unreadable>,
    batches: Vec<Batch>,
    /// The keys still to be returned, the last one first.
    order: Option<Vec<Box<[u8]>>>,
}

#[derive(Debug)]
struct State {
    offset: i64,
    timestamp: i64,
    /// `None` until a snapshot was seen: the updates belong to one that is no longer there, and another follows.
    head: Option<Head>,
    combined: Vec<StateBatch>,
    fresh: Vec<StateBatch>,
}

impl Live {
    /// Takes records as `options` say; keeps up to `unreadable_max` unreadable things as rows.
    pub fn new(options: Options, unreadable_max: Option<usize>) -> Self {
        Self {
            options,
            keep: unreadable_max.is_some(),
            states: HashMap::new(),
            unreadable: Columns::default(),
            unreadable_max: unreadable_max.unwrap_or_default(),
            lost: 0,
            first_unreadable: None,
            batches: Vec::new(),
            order: None,
        }
    }

    /// Takes the whole batches at the front of `data`; returns the offset after them.
    pub fn take(&mut self, data: &[u8]) -> Option<i64> {
        let options = self.options.clone();
        walk(data, &options, self).1
    }

    /// The first thing that could not be read.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.first_unreadable.as_ref()
    }

    /// The next rows, at most `rows_max`, ordered by share partition: none at the end. Unreadable things come last.
    pub fn drain(&mut self, rows_max: usize) -> Columns {
        let mut order = self.order.take().unwrap_or_else(|| self.sorted());
        let mut columns = Columns::default();
        while !columns.is_full(rows_max)
            && let Some(key) = order.pop()
        {
            let state = self.states.remove(&key).expect("a key that was listed");
            self.tell(&key, state, &mut columns);
        }
        if order.is_empty() && columns.rows == 0 {
            self.note_lost();
            columns = std::mem::take(&mut self.unreadable);
        }
        self.order = Some(order);
        columns
    }

    fn sorted(&self) -> Vec<Box<[u8]>> {
        let mut keys: Vec<_> = self.states.keys().cloned().collect();
        keys.sort_unstable_by(|a, b| Key::read_rest(b).ok().cmp(&Key::read_rest(a).ok()));
        keys
    }

    fn tell(&mut self, key: &[u8], mut state: State, columns: &mut Columns) {
        let key = Key::read_rest(key).ok();
        let Some(head) = state.head else {
            return self.note(
                state.offset,
                Some(state.timestamp),
                key,
                "an update, and no snapshot before or behind it".to_owned(),
            );
        };
        state.merge();
        let batches: Vec<Batch> = state.combined.iter().map(written).collect();
        columns.push(&Row {
            offset: state.offset,
            timestamp: Some(state.timestamp),
            kind: Type::Live,
            key,
            state: Some((head, &batches)),
            error: None,
        });
    }

    fn note(&mut self, offset: i64, timestamp: Option<i64>, key: Option<Key<'_>>, reason: String) {
        if self.keep && self.unreadable.rows < self.unreadable_max {
            self.unreadable.push(&Row {
                offset,
                timestamp,
                kind: Type::Unreadable,
                key,
                state: None,
                error: Some(&reason),
            });
        } else {
            self.lost += usize::from(self.keep);
        }
        self.first_unreadable
            .get_or_insert(Unreadable { offset, reason });
    }

    fn note_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.unreadable.push(&Row {
                offset: self.options.end,
                timestamp: None,
                kind: Type::Unreadable,
                key: None,
                state: None,
                error: Some(&format!("and {lost} more that cannot be read")),
            });
        }
    }

    fn fold(&mut self, record: &Record<'_>) -> Result<(), RecordFault> {
        let (kind, rest) = split_kind(record.key.unwrap_or_default())?;
        let known = self.states.contains_key(rest);
        if !known && !self.options.wants(Key::read_rest(rest)?.group) {
            return Ok(());
        }
        let Some(value) = record.value else {
            self.states.remove(rest);
            return Ok(());
        };
        let head = read_value(kind, value, &mut self.batches)?;
        if !self.batches.iter().all(possible) {
            return Err(RecordFault::StateBatch);
        }
        if !known {
            self.states.insert(rest.into(), State::new());
        }
        let state = self.states.get_mut(rest).expect("it is there");
        state.offset = record.offset;
        state.timestamp = record.timestamp;
        match kind {
            Kind::Snapshot => state.snapshot(head, &self.batches),
            Kind::Update => state.update(&head, &self.batches),
        }
        Ok(())
    }
}

impl Sink for Live {
    fn record(&mut self, record: &Record<'_>) {
        if let Err(fault) = self.fold(record) {
            let key = record.key.and_then(|key| Key::read(key).ok());
            let key = key.map(|(_, key)| key);
            self.note(
                record.offset,
                Some(record.timestamp),
                key,
                fault.to_string(),
            );
        }
    }

    fn batch_fault(&mut self, unreadable: Unreadable) {
        self.note(unreadable.offset, None, None, unreadable.reason);
    }
}

impl State {
    fn new() -> Self {
        Self {
            offset: 0,
            timestamp: 0,
            head: None,
            combined: Vec::new(),
            fresh: Vec::new(),
        }
    }

    fn snapshot(&mut self, head: Head, batches: &[Batch]) {
        self.head = Some(head);
        self.combined.clear();
        self.fresh.clear();
        self.fresh.extend(batches.iter().map(known));
    }

    fn update(&mut self, new: &Head, batches: &[Batch]) {
        let Some(head) = &mut self.head else {
            return;
        };
        head.leader_epoch = head.leader_epoch.max(new.leader_epoch);
        if new.start_offset != UNINITIALIZED {
            head.start_offset = new.start_offset;
        }
        head.delivery_complete_count = new.delivery_complete_count;
        self.fresh.extend(batches.iter().map(known));
        if self.fresh.len() >= MERGE_FROM.max(self.combined.len()) {
            self.merge();
        }
    }

    /// Moves everything into `combined`: ascending, without overlaps, from the start offset on.
    fn merge(&mut self) {
        let start = self.head.map(|head| head.start_offset);
        let start = start.filter(|start| *start >= 0);
        let mut out = Vec::new();
        combine(&self.combined, &self.fresh, start, &mut out);
        self.combined = out;
        self.fresh.clear();
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

fn written(batch: &StateBatch) -> Batch {
    Batch {
        first: batch.first,
        last: batch.last,
        state: batch.state.id().cast_signed(),
        delivery_count: batch.delivery_count.cast_signed(),
    }
}
