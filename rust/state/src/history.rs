//! One row per record.

use sharecore_records::Record;

use crate::{
    columns::{Columns, Row, Type},
    fault::RecordFault,
    key::Key,
    value::{Batch, Kind, read_value},
    walk::{Options, Sink, Unreadable, walk},
};

/// The result of [`history`].
#[derive(Debug, Default)]
pub struct History {
    /// The rows.
    pub columns: Columns,
    /// Bytes of the batches read.
    pub taken: usize,
    /// The offset after the last batch read; `None` if there was no whole one.
    pub next: Option<i64>,
    /// The first unreadable record or batch.
    pub unreadable: Option<Unreadable>,
}

/// Reads record batches into rows, up to `rows_max` or the end of the data; a batch is always read whole.
///
/// If `keep` is set, unreadable records become rows with the reason.
pub fn history(data: &[u8], options: &Options, rows_max: usize, keep: bool) -> History {
    let mut reading = Reading {
        options,
        rows_max,
        keep,
        found: History::default(),
        batches: Vec::new(),
    };
    let (taken, next) = walk(data, options, &mut reading);
    History {
        taken,
        next,
        ..reading.found
    }
}

struct Reading<'a> {
    options: &'a Options,
    rows_max: usize,
    keep: bool,
    found: History,
    batches: Vec<Batch>,
}

impl Reading<'_> {
    fn unreadable(&mut self, unreadable: Unreadable, timestamp: Option<i64>, key: Option<Key<'_>>) {
        if self.keep {
            self.found.columns.push(&Row {
                offset: unreadable.offset,
                timestamp,
                kind: Type::Unreadable,
                key,
                state: None,
                error: Some(&unreadable.reason),
            });
        }
        self.found.unreadable.get_or_insert(unreadable);
    }

    fn record_fault(&mut self, record: &Record<'_>, fault: &RecordFault, key: Option<Key<'_>>) {
        let (offset, reason) = (record.offset, fault.to_string());
        let unreadable = Unreadable { offset, reason };
        self.unreadable(unreadable, Some(record.timestamp), key);
    }
}

impl Sink for Reading<'_> {
    fn record(&mut self, record: &Record<'_>) {
        let (kind, key) = match Key::read(record.key.unwrap_or_default()) {
            Ok((_, key)) if !self.options.wants(key.group) => return,
            Ok(read) => read,
            Err(fault) => return self.record_fault(record, &fault, None),
        };
        let mut row = Row {
            offset: record.offset,
            timestamp: Some(record.timestamp),
            kind: Type::Tombstone,
            key: Some(key),
            state: None,
            error: None,
        };
        if let Some(value) = record.value {
            match read_value(kind, value, &mut self.batches) {
                Ok(head) => row.state = Some((head, &self.batches)),
                Err(fault) => return self.record_fault(record, &fault, Some(key)),
            }
            row.kind = match kind {
                Kind::Snapshot => Type::Snapshot,
                Kind::Update => Type::Update,
            };
        }
        self.found.columns.push(&row);
    }

    fn batch_fault(&mut self, unreadable: Unreadable) {
        self.unreadable(unreadable, None, None);
    }

    fn full(&self) -> bool {
        self.found.columns.is_full(self.rows_max)
    }
}
