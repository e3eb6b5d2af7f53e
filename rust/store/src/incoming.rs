//! A client's batch before its append: its records are validated piece by piece, so that a serving thread can stop
//! midway and let another thread continue.

use std::{io, sync::Arc};

use sharecore_records::{
    Compression, Compressor, EXPANDED_BYTES_MAX, Expander, Fault, Seen, Walk, check_lz4_frame,
};

use crate::{
    batch::{self, HEADER, Header, TimestampType},
    error::{RecordFault, Refusal, RefusedRecords},
    log::LogConfig,
};

/// A record without a timestamp.
const NO_TIME: i64 = -1;
/// The cost of validating a record, in expanded bytes.
const RECORD_COST: usize = 32;
/// Uncompressed bytes that cost as much as one expanded byte.
const PLAIN_SHARE: usize = 16;
/// An uncompressed batch up to this size is validated at once, which costs less than deferring it.
const SMALL: usize = 2 << 10;
/// Up to this level, zstd is about as fast as the other types.
const ZSTD_QUICK: i32 = 5;

/// The batch without its header.
struct Payload(Arc<[u8]>);

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.0[HEADER..]
    }
}

/// A batch with a valid header, whose records are being validated.
pub struct Incoming {
    header: Header,
    batch: Arc<[u8]>,
    /// `None` once all records were read.
    records: Option<Box<(Expander<Payload>, Walk)>>,
    /// Recompresses the records if the log's compression differs.
    compressor: Option<Compressor>,
    expanded_bytes: usize,
    policy: Policy,
}

/// A batch that can be appended.
pub(crate) struct Checked {
    pub(crate) header: Header,
    pub(crate) batch: Arc<[u8]>,
    /// The broker's time if the log uses it, else -1.
    pub(crate) append_time_ms: i64,
    pub(crate) now_ms: i64,
}

impl Incoming {
    pub(crate) fn new(config: LogConfig, records: &[u8], now_ms: i64) -> Result<Self, Refusal> {
        let header = batch::check(records, config.max_batch_bytes)?;
        let mut incoming = Self {
            records: None,
            compressor: None,
            batch: records[..header.size].into(),
            expanded_bytes: 0,
            policy: Policy::new(config, &header, now_ms),
            header,
        };
        let compression = header.compression().map_err(refused)?;
        incoming.policy.is_sequential = compression != Compression::None;
        let wanted = config
            .codec
            .filter(|codec| codec.compression != compression);
        if compression == Compression::None && header.size <= SMALL && wanted.is_none() {
            incoming.check_small(&records[HEADER..header.size])?;
            return Ok(incoming);
        }
        let payload = Payload(Arc::clone(&incoming.batch));
        if compression == Compression::Lz4 {
            check_lz4_frame(payload.as_ref()).map_err(refused)?;
        }
        let expander = Expander::new(compression, payload).map_err(refused)?;
        incoming.compressor = wanted.map(Compressor::new).transpose().map_err(failed)?;
        incoming.records = Some(Box::new((expander, Walk::new(&header))));
        Ok(incoming)
    }

    /// Validates all records of an uncompressed batch.
    fn check_small(&mut self, records: &[u8]) -> Result<(), Refusal> {
        let (policy, mut walk) = (&mut self.policy, Walk::new(&self.header));
        walk.feed(records, |record| policy.see(record))
            .and_then(|()| walk.finish())
            .map_err(refused)?;
        self.end()
    }

    /// Validates records for about as long as expanding `work` bytes takes, and subtracts what was used; returns
    /// whether all are validated.
    pub fn check(&mut self, work: &mut usize) -> Result<bool, Refusal> {
        if self.records.is_none() {
            *work = work.saturating_sub(RECORD_COST);
            return Ok(true);
        }
        while *work > 0 {
            let Some(done) = self.check_piece()? else {
                return Ok(true);
            };
            *work = work.saturating_sub(done);
        }
        Ok(self.records.is_none())
    }

    /// Whether the next piece takes no longer than expanding `work` bytes.
    pub fn begins_within(&self, work: usize) -> bool {
        let records = self.records.as_ref();
        let cost = self.compression_cost();
        records.is_none_or(|records| records.0.next_size().saturating_mul(1 + cost) <= work)
    }

    /// The cost of compressing a byte relative to expanding one; 0 without recompression.
    fn compression_cost(&self) -> usize {
        let codec = self
            .policy
            .config
            .codec
            .filter(|_| self.compressor.is_some());
        codec.map_or(0, |codec| match codec.compression {
            Compression::None => 0,
            Compression::Snappy | Compression::Lz4 => 1,
            Compression::Zstd if codec.level.is_none_or(|level| level <= ZSTD_QUICK) => 2,
            Compression::Gzip => 8,
            Compression::Zstd => 64,
        })
    }

    /// Validates the next piece, and returns its cost; `None` at the end.
    fn check_piece(&mut self) -> Result<Option<usize>, Refusal> {
        let cost = self.compression_cost();
        let Some((expander, walk)) = self.records.as_deref_mut() else {
            return Ok(None);
        };
        let is_plain = expander.is_plain();
        let piece = expander.next_piece().map_err(refused)?;
        if piece.is_empty() {
            walk.finish().map_err(refused)?;
            self.records = None;
            self.recompress()?;
            self.end()?;
            return Ok(None);
        }
        self.expanded_bytes = self.expanded_bytes.saturating_add(piece.len());
        if self.expanded_bytes > EXPANDED_BYTES_MAX && !is_plain {
            return Err(Refusal::ExpandsTooFar {
                limit: EXPANDED_BYTES_MAX,
            });
        }
        let compressed = piece.len().saturating_mul(cost);
        if let Some(compressor) = &mut self.compressor {
            compressor.write(piece).map_err(failed)?;
            check_size(HEADER + compressor.written(), self.policy.config)?;
        }
        let before = walk.walked();
        let policy = &mut self.policy;
        walk.feed(piece, |record| policy.see(record))
            .map_err(refused)?;
        if !policy.in_order {
            return Err(Refusal::InvalidRecord(
                "the offsets of compressed records must count from 0".into(),
            ));
        }
        debug_assert!(walk.walked() >= before, "a walk goes forward");
        let records = (walk.walked() - before) as usize;
        let bytes = if is_plain {
            piece.len() / PLAIN_SHARE
        } else {
            piece.len()
        };
        Ok(Some(bytes + compressed + records * RECORD_COST))
    }

    /// Replaces the records with the recompressed ones.
    fn recompress(&mut self) -> Result<(), Refusal> {
        let (Some(compressor), Some(codec)) = (self.compressor.take(), self.policy.config.codec)
        else {
            return Ok(());
        };
        let records = compressor.finish().map_err(failed)?;
        check_size(HEADER + records.len(), self.policy.config)?;
        let mut batch = Vec::with_capacity(HEADER + records.len());
        batch.extend_from_slice(&self.batch[..HEADER]);
        batch.extend_from_slice(&records);
        batch::recompressed(&mut batch, &mut self.header, codec.compression);
        debug_assert!(batch.len() >= HEADER, "a batch has a header");
        self.batch = batch.into();
        Ok(())
    }

    /// All records were read: refuses them, or sets their time.
    fn end(&mut self) -> Result<(), Refusal> {
        assert!(self.records.is_none(), "a record was not read");
        let policy = &mut self.policy;
        if policy.refused.count > 0 {
            return Err(Refusal::Records(std::mem::take(&mut policy.refused)));
        }
        let latest = if policy.by_producer() {
            policy.latest
        } else {
            policy.now_ms
        };
        let bytes = Arc::get_mut(&mut self.batch).expect("its reader is gone");
        batch::assign_time(
            bytes,
            &mut self.header,
            policy.config.timestamp_type,
            latest,
        );
        Ok(())
    }

    pub(crate) fn into_checked(self) -> Checked {
        debug_assert!(self.records.is_none(), "its records have been validated");
        debug_assert!(
            self.compressor.is_none(),
            "its records are recompressed first"
        );
        debug_assert_eq!(
            self.header.size,
            self.batch.len(),
            "its header is of another batch"
        );
        debug_assert!(
            batch::matches_checksum(&self.batch),
            "its checksum was not updated"
        );
        let now_ms = self.policy.now_ms;
        Checked {
            header: self.header,
            batch: self.batch,
            append_time_ms: if self.policy.by_producer() {
                -1
            } else {
                now_ms
            },
            now_ms,
        }
    }
}

/// The log's requirements, and the violations found.
struct Policy {
    config: LogConfig,
    now_ms: i64,
    /// The batch uses `LogAppendTime`.
    is_brokers: bool,
    /// Offsets must be sequential from 0.
    is_sequential: bool,
    in_order: bool,
    latest: i64,
    refused: RefusedRecords,
}

impl Policy {
    fn new(config: LogConfig, header: &Header, now_ms: i64) -> Self {
        Self {
            config,
            now_ms,
            is_brokers: header.timestamp_type() == TimestampType::LogAppendTime,
            is_sequential: true,
            in_order: true,
            latest: NO_TIME,
            refused: RefusedRecords::default(),
        }
    }

    fn by_producer(&self) -> bool {
        self.config.timestamp_type == TimestampType::CreateTime
    }

    fn see(&mut self, record: Seen) {
        self.in_order &= !self.is_sequential || record.offset_delta == record.index;
        self.latest = record.timestamp.max(self.latest);
        if self.config.needs_keys && !record.has_key {
            self.refused.push(record.index, RecordFault::NoKey);
            return;
        }
        let is_taken = if self.by_producer() && record.timestamp != NO_TIME {
            self.config.takes_time(record.timestamp, self.now_ms)
        } else {
            !self.is_brokers
        };
        if !is_taken {
            self.refused.push(record.index, RecordFault::Timestamp);
        }
    }
}

fn check_size(size: usize, config: LogConfig) -> Result<(), Refusal> {
    let limit = config.max_batch_bytes;
    if size > limit {
        return Err(Refusal::TooLarge { size, limit });
    }
    Ok(())
}

#[allow(clippy::needless_pass_by_value, reason = "it maps errors")]
fn failed(error: io::Error) -> Refusal {
    Refusal::Storage(format!("the records could not be compressed: {error}"))
}

#[allow(clippy::needless_pass_by_value, reason = "it maps errors")]
fn refused(fault: Fault) -> Refusal {
    Refusal::InvalidRecord(fault.to_string())
}
