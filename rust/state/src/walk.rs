//! Record batches of one partition of the topic, record by record.

use sharecore_records::{Batch, Batches, Fault, Record};

/// What is wanted of record batches, and how much at a time.
#[derive(Debug, Clone)]
pub struct Options {
    /// Offset from which on records count.
    pub first: i64,
    /// Offset after the last record that counts.
    pub end: i64,
    /// Bytes that a batch may expand to.
    pub expanded_max: usize,
    /// Only records of this share group; those whose key cannot be read stay.
    pub group: Option<String>,
}

impl Options {
    /// Bytes that a batch may expand to at most: what comes of them must fit offsets of 32 bits.
    pub const EXPANDED_MAX: usize = 128 << 20;

    pub(crate) fn wants(&self, group: &str) -> bool {
        self.group.as_deref().is_none_or(|wanted| wanted == group)
    }
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where it is in the partition.
    pub offset: i64,
    /// Why.
    pub reason: String,
}

/// What takes the records.
pub(crate) trait Sink {
    fn record(&mut self, record: &Record<'_>);
    fn batch_fault(&mut self, unreadable: Unreadable);
    /// Whether nothing more is wanted for now; asked between batches.
    fn full(&self) -> bool {
        false
    }
}

/// Gives `sink` the records of whole batches; returns how many bytes they took, and the offset after the last one.
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

/// Moves `at` past each record that was read.
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
