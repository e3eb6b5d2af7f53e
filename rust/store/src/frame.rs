//! One commit in the journal: a header and the operations that become visible together.
//!
//! Header, little endian: magic (4), CRC-32C of the rest (4), bytes of the body (4), operations (4), number of the
//! frame (8), flags (1), zeros (7). An operation is a tag and its fields; a batch's bytes are stored unchanged.

use std::io::IoSlice;

use crate::{LogId, cleaner::Progress, producer::Aborted};

/// Bytes before a frame's body.
pub(crate) const FRAME_HEADER: usize = 32;
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"SCfr";

const _: () = assert!(
    FRAME_HEADER == FRAME_MAGIC.len() + 4 + 4 + 4 + 8 + 1 + 7,
    "magic, checksum, bytes, operations, number, flags, zeros"
);
/// The previous frame was synced before this one was written.
pub(crate) const SYNCED: u8 = 1;

const APPEND: u8 = 1;
const PUT: u8 = 2;
const DELETE: u8 = 3;
const CREATE_LOG: u8 = 4;
const DROP_LOG: u8 = 5;
const LOG_START: u8 = 6;
const SEGMENTS: u8 = 7;
const CLEAN: u8 = 8;

/// An operation in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Append {
        log: LogId,
        now_ms: i64,
        batch: &'a [u8],
    },
    Put {
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        key: &'a [u8],
    },
    CreateLog {
        log: LogId,
    },
    DropLog {
        log: LogId,
    },
    LogStart {
        log: LogId,
        offset: i64,
    },
    /// Files of sealed segments that replace others.
    Segments {
        added: Vec<u64>,
        removed: Vec<u64>,
    },
    Clean(Clean),
}

/// The result of a compaction pass over a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clean {
    pub(crate) log: LogId,
    pub(crate) progress: Progress,
    pub(crate) added: Vec<u64>,
    /// Producer, first and last offset of aborted transactions without remaining batches.
    pub(crate) vanished: Vec<Aborted>,
}

/// A frame under construction: small fields are gathered, batches are referred to.
pub(crate) struct FrameWriter<'a> {
    small: Vec<u8>,
    /// End of each part of `small`, and the batch that follows it.
    parts: Vec<(usize, &'a [u8])>,
    body: usize,
    count: u32,
}

impl<'a> FrameWriter<'a> {
    pub(crate) fn new() -> Self {
        Self {
            small: vec![0; FRAME_HEADER],
            parts: Vec::new(),
            body: 0,
            count: 0,
        }
    }

    /// Adds an operation; returns the position of its batch in the frame (0 without a batch).
    pub(crate) fn push(&mut self, op: &Op<'a>) -> usize {
        self.count += 1;
        let before = self.small.len();
        let mut batch_at = 0;
        match op {
            Op::Append { log, now_ms, batch } => {
                self.small.push(APPEND);
                self.small.extend_from_slice(&log.to_le_bytes());
                self.small.extend_from_slice(&now_ms.to_le_bytes());
                self.bytes_len(batch);
                batch_at = FRAME_HEADER + self.body + self.small.len() - before;
                self.parts.push((self.small.len(), batch));
                self.body += batch.len();
            }
            Op::Put { key, value } => {
                self.small.push(PUT);
                self.bytes_len(key);
                self.bytes_len(value);
                self.small.extend_from_slice(key);
                self.small.extend_from_slice(value);
            }
            Op::Delete { key } => {
                self.small.push(DELETE);
                self.bytes_len(key);
                self.small.extend_from_slice(key);
            }
            Op::CreateLog { log } => {
                self.small.push(CREATE_LOG);
                self.small.extend_from_slice(&log.to_le_bytes());
            }
            Op::DropLog { log } => {
                self.small.push(DROP_LOG);
                self.small.extend_from_slice(&log.to_le_bytes());
            }
            Op::LogStart { log, offset } => {
                self.small.push(LOG_START);
                self.small.extend_from_slice(&log.to_le_bytes());
                self.small.extend_from_slice(&offset.to_le_bytes());
            }
            Op::Segments { added, removed } => {
                self.small.push(SEGMENTS);
                self.numbers(added);
                self.numbers(removed);
            }
            Op::Clean(clean) => {
                self.small.push(CLEAN);
                let Progress {
                    end,
                    covered,
                    since,
                } = clean.progress;
                for field in [
                    clean.log,
                    end.cast_unsigned(),
                    covered.cast_unsigned(),
                    since,
                ] {
                    self.small.extend_from_slice(&field.to_le_bytes());
                }
                self.numbers(&clean.added);
                let fields = |a: &Aborted| [a.producer_id, a.first_offset, a.last_offset];
                let vanished: Vec<u64> = clean
                    .vanished
                    .iter()
                    .flat_map(|aborted| fields(aborted).map(i64::cast_unsigned))
                    .collect();
                self.numbers(&vanished);
            }
        }
        debug_assert!(self.small.len() > before, "an operation has a tag");
        self.body += self.small.len() - before;
        debug_assert!(
            batch_at == 0 || batch_at > FRAME_HEADER && batch_at <= self.size(),
            "the batch is outside of its frame"
        );
        batch_at
    }

    fn numbers(&mut self, list: &[u64]) {
        assert!(u32::try_from(list.len()).is_ok(), "too long a list");
        self.small
            .extend_from_slice(&(list.len() as u32).to_le_bytes());
        for number in list {
            self.small.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn bytes_len(&mut self, bytes: &[u8]) {
        // a truncated length would make this frame and all later ones unreadable
        assert!(u32::try_from(bytes.len()).is_ok(), "too many bytes");
        self.small
            .extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    }

    /// Current size of the frame.
    pub(crate) fn size(&self) -> usize {
        FRAME_HEADER + self.body
    }

    /// Completes the header; returns the frame as slices.
    pub(crate) fn finish(&mut self, number: u64, flags: u8) -> Vec<IoSlice<'_>> {
        assert!(number > 0, "frames count from one");
        assert!(u32::try_from(self.body).is_ok(), "too large a frame");
        self.small[0..4].copy_from_slice(&FRAME_MAGIC);
        self.small[8..12].copy_from_slice(&(self.body as u32).to_le_bytes());
        self.small[12..16].copy_from_slice(&self.count.to_le_bytes());
        self.small[16..24].copy_from_slice(&number.to_le_bytes());
        self.small[24] = flags;
        let mut crc = 0;
        let mut from = 8;
        for (to, batch) in &self.parts {
            crc = crc32c::crc32c_append(crc32c::crc32c_append(crc, &self.small[from..*to]), batch);
            from = *to;
        }
        crc = crc32c::crc32c_append(crc, &self.small[from..]);
        self.small[4..8].copy_from_slice(&crc.to_le_bytes());

        let mut slices = Vec::with_capacity(2 * self.parts.len() + 1);
        let mut from = 0;
        for (to, batch) in &self.parts {
            slices.push(IoSlice::new(&self.small[from..*to]));
            slices.push(IoSlice::new(batch));
            from = *to;
        }
        if from < self.small.len() {
            slices.push(IoSlice::new(&self.small[from..]));
        }
        debug_assert_eq!(
            slices.iter().map(|slice| slice.len()).sum::<usize>(),
            FRAME_HEADER + self.body,
            "the counted size is wrong"
        );
        slices
    }
}

/// Size of the body according to a frame's header; `None` if the header is invalid.
pub(crate) fn body_len(header: &[u8]) -> Option<usize> {
    let len = header.get(8..12)?.try_into().ok()?;
    (header[0..4] == FRAME_MAGIC).then(|| u32::from_le_bytes(len) as usize)
}

/// An intact frame.
pub(crate) struct Frame<'a> {
    pub(crate) number: u64,
    pub(crate) synced: bool,
    pub(crate) size: usize,
    body: &'a [u8],
    count: u32,
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, if it is whole and intact.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        if bytes.get(0..4)? != FRAME_MAGIC {
            return None;
        }
        let mut fields = Fields {
            rest: bytes.get(4..FRAME_HEADER)?,
        };
        let crc = fields.u32()?;
        let size = FRAME_HEADER + fields.u32()? as usize;
        let frame = Self {
            count: fields.u32()?,
            number: fields.u64()?,
            synced: fields.take(1)?[0] & SYNCED != 0,
            size,
            body: bytes.get(FRAME_HEADER..size)?,
        };
        debug_assert_eq!(frame.body.len(), size - FRAME_HEADER);
        (crc32c::crc32c(&bytes[8..size]) == crc).then_some(frame)
    }

    /// Whether a restart would read the bytes as the frame with this number and these operations.
    pub(crate) fn is_of(bytes: &'a [u8], number: u64, ops: &[Op<'_>]) -> bool {
        Self::read(bytes).is_some_and(|frame| {
            frame.number == number
                && frame.size == bytes.len()
                && frame.count as usize == ops.len()
                && frame
                    .ops()
                    .zip(ops)
                    .all(|(read, op)| read.is_some_and(|(read, _)| read == *op))
        })
    }

    /// The operations, each with the position of its batch in the frame; `None` for an unknown one.
    pub(crate) fn ops(&self) -> impl Iterator<Item = Option<(Op<'a>, usize)>> + use<'a> {
        let total = self.body.len();
        let mut fields = Fields { rest: self.body };
        (0..self.count).map(move |_| {
            let op = fields.op()?;
            let batch_at = match &op {
                Op::Append { batch, .. } => FRAME_HEADER + total - fields.rest.len() - batch.len(),
                _ => 0,
            };
            Some((op, batch_at))
        })
    }
}

/// Little-endian fields, read in order; `None` when the bytes run out.
pub(crate) struct Fields<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.u64().map(u64::cast_signed)
    }

    pub(crate) fn sized(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        let count = self.u32()?;
        (0..count).map(|_| self.u64()).collect()
    }

    fn clean(&mut self) -> Option<Clean> {
        let log = self.u64()?;
        let (end, covered, since) = (self.i64()?, self.i64()?, self.u64()?);
        let added = self.numbers()?;
        let vanished = self.numbers()?;
        let aborted = |fields: &[u64; 3]| Aborted {
            producer_id: fields[0].cast_signed(),
            first_offset: fields[1].cast_signed(),
            last_offset: fields[2].cast_signed(),
        };
        let (vanished, rest) = vanished.as_chunks::<3>();
        rest.is_empty().then(|| Clean {
            log,
            progress: Progress {
                end,
                covered,
                since,
            },
            added,
            vanished: vanished.iter().map(aborted).collect(),
        })
    }

    fn op(&mut self) -> Option<Op<'a>> {
        Some(match self.take(1)?[0] {
            APPEND => {
                let (log, now_ms) = (self.u64()?, self.i64()?);
                Op::Append {
                    log,
                    now_ms,
                    batch: self.sized()?,
                }
            }
            PUT => {
                let (key_len, value_len) = (self.u32()? as usize, self.u32()? as usize);
                Op::Put {
                    key: self.take(key_len)?,
                    value: self.take(value_len)?,
                }
            }
            DELETE => Op::Delete { key: self.sized()? },
            CREATE_LOG => Op::CreateLog { log: self.u64()? },
            DROP_LOG => Op::DropLog { log: self.u64()? },
            LOG_START => Op::LogStart {
                log: self.u64()?,
                offset: self.i64()?,
            },
            SEGMENTS => Op::Segments {
                added: self.numbers()?,
                removed: self.numbers()?,
            },
            CLEAN => Op::Clean(self.clean()?),
            _ => return None,
        })
    }
}
