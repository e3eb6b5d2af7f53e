//! A fold as rows: one for each share partition with state.

use std::collections::HashMap;

use sharecore_engine::StateBatch;
use sharecore_records::Record;

use crate::{
    columns::{Columns, Row, Type},
    fault::RecordFault,
    fold::{Fold, Folded},
    key::{Key, split_kind},
    value::Batch,
    walk::{Options, Sink, Unreadable, walk},
};

/// Folds records; the states are returned at the end.
#[derive(Debug)]
pub struct Live {
    options: Options,
    keep: bool,
    fold: Fold,
    /// Updates without a preceding snapshot, by key without its type: offset and timestamp of the last one. A snapshot
    /// follows unless something was lost.
    orphans: HashMap<Box<[u8]>, (i64, i64)>,
    unreadable: Columns,
    unreadable_max: usize,
    /// How many unreadable records did not fit.
    lost: usize,
    first_unreadable: Option<Unreadable>,
    /// The keys left to return, last one first.
    order: Option<Vec<Box<[u8]>>>,
}

impl Live {
    /// Takes records as `options` say; keeps up to `unreadable_max` unreadable ones as rows.
    pub fn new(options: Options, unreadable_max: Option<usize>) -> Self {
        Self {
            options,
            keep: unreadable_max.is_some(),
            fold: Fold::default(),
            orphans: HashMap::new(),
            unreadable: Columns::default(),
            unreadable_max: unreadable_max.unwrap_or_default(),
            lost: 0,
            first_unreadable: None,
            order: None,
        }
    }

    /// Takes the leading whole batches of `data`; returns the offset after them.
    pub fn take(&mut self, data: &[u8]) -> Option<i64> {
        let options = self.options.clone();
        walk(data, &options, self).1
    }

    /// The first unreadable record or batch.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.first_unreadable.as_ref()
    }

    /// Returns up to `rows_max` rows, ordered by share partition, unreadable ones last; empty at the end.
    pub fn drain(&mut self, rows_max: usize) -> Columns {
        let mut order = match self.order.take() {
            Some(order) => order,
            None => self.begin_drain(),
        };
        let mut columns = Columns::default();
        while !columns.is_full(rows_max)
            && let Some(key) = order.pop()
        {
            let state = self.fold.remove(&key).expect("a key that was listed");
            push_row(&key, state, &mut columns);
        }
        if order.is_empty() && columns.rows == 0 {
            self.note_lost();
            columns = std::mem::take(&mut self.unreadable);
        }
        self.order = Some(order);
        columns
    }

    /// The keys of the states, last one first; updates that never got a snapshot become unreadable rows.
    fn begin_drain(&mut self) -> Vec<Box<[u8]>> {
        let mut orphans: Vec<_> = std::mem::take(&mut self.orphans).into_iter().collect();
        orphans.sort_unstable_by(|a, b| by_key(&a.0, &b.0));
        for (key, (offset, timestamp)) in orphans {
            let reason = "an update, and no snapshot before or behind it".to_owned();
            self.note(offset, Some(timestamp), Key::read_rest(&key).ok(), reason);
        }
        let mut keys: Vec<Box<[u8]>> = self.fold.keys().map(Box::from).collect();
        keys.sort_unstable_by(|a, b| by_key(b, a));
        keys
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
        let key = record.key.unwrap_or_default();
        let Self { fold, options, .. } = self;
        let wants = |group: &str| options.wants(group);
        let taken = fold.take(record.offset, record.timestamp, key, record.value, wants);
        match (taken, split_kind(key)) {
            (Err(RecordFault::NoSnapshot), Ok((_, rest))) => {
                let at = (record.offset, record.timestamp);
                self.orphans.insert(rest.into(), at);
                Ok(())
            }
            (Ok(()), Ok((_, rest))) => {
                if !self.orphans.is_empty() {
                    self.orphans.remove(rest);
                }
                Ok(())
            }
            (taken, _) => taken,
        }
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

fn by_key(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    Key::read_rest(a).ok().cmp(&Key::read_rest(b).ok())
}

fn push_row(key: &[u8], mut state: Folded, columns: &mut Columns) {
    let batches: Vec<Batch> = state.content.batches().iter().map(written).collect();
    columns.push(&Row {
        offset: state.offset,
        timestamp: Some(state.timestamp),
        kind: Type::Live,
        key: Key::read_rest(key).ok(),
        state: Some((*state.content.head(), &batches)),
        error: None,
    });
}

fn written(batch: &StateBatch) -> Batch {
    Batch {
        first: batch.first,
        last: batch.last,
        state: batch.state.id().cast_signed(),
        delivery_count: batch.delivery_count.cast_signed(),
    }
}
