//! A client's batch between its arrival and the log: its records are checked a piece at a time, so that whoever serves
//! others can stop after some and let another thread go on.

use std::sync::Arc;

use sharecore_records::{
    Compression, EXPANDED_BYTES_MAX, Expander, Fault, Seen, Walk, check_lz4_frame,
};

use crate::{
    batch::{self, HEADER, Header, TimestampType},
    error::{RecordFault, Refusal, RefusedRecords},
    log::LogConfig,
};

/// A record whose producer says no time.
const NO_TIME: i64 = -1;
/// What a record costs to check, in expanded bytes that cost as much.
const RECORD_COST: usize = 32;
/// Bytes that are not compressed, for one expanded byte.
const PLAIN_SHARE: usize = 16;

/// The batch without its header.
struct Payload(Arc<[u8]>);

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.0[HEADER..]
    }
}

/// A batch whose header is right, and whose records are being checked.
pub struct Incoming {
    header: Header,
    batch: Arc<[u8]>,
    config: LogConfig,
    now_ms: i64,
    /// `None` once all records have been seen.
    records: Option<(Expander<Payload>, Walk)>,
    expanded_bytes: usize,
    latest: i64,
    refused: RefusedRecords,
}

/// A batch that may be appended.
pub(crate) struct Checked {
    pub(crate) header: Header,
    pub(crate) batch: Arc<[u8]>,
    /// The broker's time, where the log uses it; otherwise -1.
    pub(crate) append_time_ms: i64,
    pub(crate) now_ms: i64,
}

impl Incoming {
    pub(crate) fn new(config: LogConfig, records: &[u8], now_ms: i64) -> Result<Self, Refusal> {
        let header = batch::check(records, config.max_batch_bytes)?;
        let batch: Arc<[u8]> = records[..header.size].into();
        let compression = header.compression().map_err(refused)?;
        let payload = Payload(Arc::clone(&batch));
        if compression == Compression::Lz4 {
            check_lz4_frame(payload.as_ref()).map_err(refused)?;
        }
        let expander = Expander::new(compression, payload).map_err(refused)?;
        Ok(Self {
            records: Some((expander, Walk::new(&header))),
            header,
            batch,
            config,
            now_ms,
            expanded_bytes: 0,
            latest: NO_TIME,
            refused: RefusedRecords::default(),
        })
    }

    /// Checks records for about as long as it takes to expand `work` bytes, and takes off what was used; returns whether all
    /// have been checked.
    pub fn check(&mut self, work: &mut usize) -> Result<bool, Refusal> {
        while *work > 0 {
            let Some(done) = self.check_piece()? else {
                return Ok(true);
            };
            *work = work.saturating_sub(done);
        }
        Ok(self.records.is_none())
    }

    /// Whether the next piece is at most `work` bytes.
    pub fn begins_within(&self, work: usize) -> bool {
        let records = self.records.as_ref();
        records.is_none_or(|(expander, _)| expander.next_size() <= work)
    }

    /// Checks the next piece, and returns what that cost; `None` at the end.
    fn check_piece(&mut self) -> Result<Option<usize>, Refusal> {
        let Some((expander, walk)) = &mut self.records else {
            return Ok(None);
        };
        let is_plain = expander.is_plain();
        let piece = expander.next_piece().map_err(refused)?;
        if piece.is_empty() {
            walk.finish().map_err(refused)?;
            self.records = None;
            self.end()?;
            return Ok(None);
        }
        self.expanded_bytes = self.expanded_bytes.saturating_add(piece.len());
        if self.expanded_bytes > EXPANDED_BYTES_MAX && !is_plain {
            return Err(Refusal::ExpandsTooFar {
                limit: EXPANDED_BYTES_MAX,
            });
        }
        let before = walk.walked();
        let mut policy = Policy {
            config: &self.config,
            now_ms: self.now_ms,
            is_brokers: self.header.timestamp_type() == TimestampType::LogAppendTime,
            is_sequential: !is_plain,
            in_order: true,
            latest: &mut self.latest,
            refused: &mut self.refused,
        };
        walk.feed(piece, |record| policy.see(record))
            .map_err(refused)?;
        if !policy.in_order {
            return Err(Refusal::InvalidRecord(
                "the offsets of compressed records must count from 0".into(),
            ));
        }
        let records = (walk.walked() - before) as usize;
        let bytes = if is_plain {
            piece.len() / PLAIN_SHARE
        } else {
            piece.len()
        };
        Ok(Some(bytes + records * RECORD_COST))
    }

    /// All records have been seen: refuses them, or writes down their time.
    fn end(&mut self) -> Result<(), Refusal> {
        if self.refused.count > 0 {
            return Err(Refusal::Records(std::mem::take(&mut self.refused)));
        }
        let latest = match self.config.timestamp_type {
            TimestampType::LogAppendTime => self.now_ms,
            TimestampType::CreateTime => self.latest,
        };
        let bytes = Arc::get_mut(&mut self.batch).expect("its reader is gone");
        batch::assign_time(bytes, &mut self.header, self.config.timestamp_type, latest);
        Ok(())
    }

    pub(crate) fn into_checked(self) -> Checked {
        debug_assert!(self.records.is_none(), "its records have been checked");
        let append_time_ms = match self.config.timestamp_type {
            TimestampType::LogAppendTime => self.now_ms,
            TimestampType::CreateTime => -1,
        };
        Checked {
            header: self.header,
            batch: self.batch,
            append_time_ms,
            now_ms: self.now_ms,
        }
    }
}

/// What a log takes of the records that are seen.
struct Policy<'a> {
    config: &'a LogConfig,
    now_ms: i64,
    is_brokers: bool,
    is_sequential: bool,
    in_order: bool,
    latest: &'a mut i64,
    refused: &'a mut RefusedRecords,
}

impl Policy<'_> {
    fn see(&mut self, record: Seen) {
        self.in_order &= !self.is_sequential || record.offset_delta == record.index;
        *self.latest = record.timestamp.max(*self.latest);
        if self.config.needs_keys && !record.has_key {
            self.refused.push(record.index, RecordFault::NoKey);
            return;
        }
        let by_producer = self.config.timestamp_type == TimestampType::CreateTime;
        let is_taken = if by_producer && record.timestamp != NO_TIME {
            self.config.takes_time(record.timestamp, self.now_ms)
        } else {
            !self.is_brokers
        };
        if !is_taken {
            self.refused.push(record.index, RecordFault::Timestamp);
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it maps errors")]
fn refused(fault: Fault) -> Refusal {
    Refusal::InvalidRecord(fault.to_string())
}
