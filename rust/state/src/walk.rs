//! Walks the record batches of one partition of the topic, record by record.

use sharecore_records::{Batch, Batches, Fault, Record};

/// Which records to read, and how many at a time.
#[derive(Debug, Clone)]
pub struct Options {
    /// The first offset to read.
    pub first: i64,
    /// The offset after the last record to read.
    pub end: i64,
    /// The most bytes that a batch may expand to.
    pub expanded_max: usize,
    /// Only records of this share group, and those with unreadable keys.
    pub group: Option<String>,
}

impl Options {
    /// The most bytes that a batch may ever expand to: the columns must fit 32-bit offsets.
    pub const EXPANDED_MAX: usize = 128 << 20;

    pub(crate) fn wants(&self, group: &str) -> bool {
        self.group.as_deref().is_none_or(|wanted| wanted == group)
    }
}

/// An unreadable record or batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its offset in the partition.
    pub offset: i64,
    /// The reason.
    pub reason: String,
}

/// A consumer of records.
pub(crate) trait Sink {
    fn record(&mut self, record: &Record<'_>);
    fn batch_fault(&mut self, unreadable: Unreadable);
    /// Whether to pause; asked between batches.
    fn full(&self) -> bool {
        false
    }
}

/// Passes the records of whole batches to `sink`; returns the bytes consumed, and the offset after the last batch.
pub(crate) fn walk(data: &[u8], options: &Options, sink: &mut impl Sink) -> (usize, Option<i64>) {
    let (mut taken, mut next) = (0, None);
    for batch in Batches::new(data) {
        if sink.full() {
            break;
        }
        taken += batch.bytes().len();
        let last = batch.header.last_offset();
        next = Some(last.saturating_add(1));
        if last < options.first || batch.header.base_offset >= options.end {
            continue;
        }
        let mut at = batch.header.base_offset;
        if let Err(fault) = read(&batch, options, sink, &mut at) {
            sink.batch_fault(Unreadable {
                offset: at,
                reason: format!("nothing up to offset {last} can be read: {fault}"),
            });
        }
    }
    (taken, next)
}

/// Moves `at` past each record read.
fn read(
    batch: &Batch<'_>,
    options: &Options,
    sink: &mut impl Sink,
    at: &mut i64,
) -> Result<(), Fault> {
    let expanded = batch.expand(options.expanded_max.min(Options::EXPANDED_MAX))?;
    if batch.header.is_control() {
        return Ok(());
    }
    for record in batch.records(&expanded) {
        let record = record?;
        *at = record.offset.saturating_add(1);
        if (options.first..options.end).contains(&record.offset) {
            sink.record(&record);
        }
    }
    Ok(())
}
