//! Errors: refused requests, and failures of the store itself.

use std::{fmt, io, path::PathBuf};

/// A refused request; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are not one whole, intact record batch.
    CorruptBatch(String),
    /// An intact batch that a client may not write.
    InvalidRecord(String),
    /// A compression type not allowed in the request's version.
    UnsupportedCompression,
    /// The batch exceeds the log's size limit.
    TooLarge {
        /// Size of the batch.
        size: usize,
        /// `max.message.bytes` of the log.
        limit: usize,
    },
    /// The records of the batch expand beyond the limit of readers.
    ExpandsTooFar {
        /// The limit of readers.
        limit: usize,
    },
    /// Records that the log refuses, the first of them by their index in the batch.
    Records(RefusedRecords),
    /// The sequence number does not continue the producer's previous one.
    OutOfOrderSequence(String),
    /// A producer with a newer epoch has taken over.
    InvalidProducerEpoch(String),
    /// A non-transactional batch of a producer with an open transaction.
    InvalidTransaction(String),
    /// A transaction marker from a fenced coordinator.
    CoordinatorFenced(String),
    /// The offset lies outside the log.
    OffsetOutOfRange(String),
    /// The log does not exist, or is being deleted.
    UnknownLog(u64),
    /// Too many writes are pending; try again.
    Busy,
    /// The disk failed; staged writes are lost.
    Storage(String),
    /// A batch is damaged on disk.
    Damaged(String),
}

/// Why a log refuses a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// Its timestamp is further from the current time than the log allows.
    Timestamp,
    /// It has no key, and the log is compacted.
    NoKey,
}

/// The records of a batch that a log refuses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedRecords {
    /// The number of records.
    pub count: usize,
    /// The first of them.
    pub first: Vec<(i32, RecordFault)>,
    /// Whether any of them has an invalid timestamp.
    pub any_timestamp: bool,
}

/// The most refused records listed.
const NAMED_RECORDS_MAX: usize = 10_000;

impl RefusedRecords {
    pub(crate) fn push(&mut self, index: i32, fault: RecordFault) {
        self.count += 1;
        self.any_timestamp |= fault == RecordFault::Timestamp;
        if self.first.len() < NAMED_RECORDS_MAX {
            self.first.push((index, fault));
        }
    }
}

impl Refusal {
    /// The Kafka error code.
    pub fn code(&self) -> i16 {
        match self {
            Self::OffsetOutOfRange(_) => 1,
            Self::CorruptBatch(_) => 2,
            Self::UnknownLog(_) => 3,
            Self::TooLarge { .. } | Self::ExpandsTooFar { .. } => 10,
            Self::Records(refused) if refused.any_timestamp => 32,
            Self::OutOfOrderSequence(_) => 45,
            Self::InvalidProducerEpoch(_) => 47,
            Self::InvalidTransaction(_) => 48,
            Self::CoordinatorFenced(_) => 52,
            Self::Busy | Self::Storage(_) | Self::Damaged(_) => 56,
            Self::UnsupportedCompression => 76,
            Self::InvalidRecord(_) | Self::Records(_) => 87,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CorruptBatch(what)
            | Self::InvalidRecord(what)
            | Self::OutOfOrderSequence(what)
            | Self::InvalidProducerEpoch(what)
            | Self::InvalidTransaction(what)
            | Self::CoordinatorFenced(what)
            | Self::OffsetOutOfRange(what)
            | Self::Storage(what)
            | Self::Damaged(what) => f.write_str(what),
            Self::UnsupportedCompression => f.write_str(
                "Produce requests before version 7 bring no batches compressed with zstd",
            ),
            Self::Records(refused) if refused.any_timestamp => {
                f.write_str("One or more records have been rejected due to invalid timestamp")
            }
            Self::Records(refused) => write!(
                f,
                "One or more records have been rejected, as they have no key and the topic is compacted: {} in all",
                refused.count
            ),
            Self::TooLarge { size, limit } => write!(
                f,
                "record batch of {size} bytes exceeds the limit of {limit}"
            ),
            Self::ExpandsTooFar { limit } => write!(
                f,
                "the records of the batch expand to more than {limit} bytes; send smaller batches"
            ),
            Self::UnknownLog(id) => write!(f, "log {id} does not exist"),
            Self::Busy => f.write_str("too many bytes are waiting to be written; retry later"),
        }
    }
}

impl std::error::Error for Refusal {}

/// The store cannot be opened or used.
#[derive(Debug)]
pub enum StoreError {
    /// Another process uses the directory.
    Locked(PathBuf),
    /// A newer release has written to the directory.
    Newer {
        /// The directory.
        dir: PathBuf,
        /// Its format.
        format: u32,
        /// The release that wrote it.
        release: String,
    },
    /// A file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The position in the file.
        at: u64,
        /// What is wrong there.
        what: String,
    },
    /// The operating system failed.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl StoreError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Whether a retry may succeed while another process writes to the directory.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Locked(_) | Self::Newer { .. } => false,
            Self::Damaged { .. } => true,
            Self::Io { path, source } => {
                source.kind() == io::ErrorKind::NotFound && path.extension().is_some()
            }
        }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, at: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.into(),
            at,
            what: what.into(),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked(path) => {
                write!(
                    f,
                    "{} is in use by another process; stop it or choose another directory",
                    path.display()
                )
            }
            Self::Newer {
                dir,
                format,
                release,
            } => {
                let (this, known) = (env!("CARGO_PKG_VERSION"), crate::FORMAT);
                write!(
                    f,
                    "{} is written in format {format}, by sharecore {release}; this is sharecore {this}, which reads formats up to {known}: run {release} or later, or restore a copy from before the upgrade; nothing was changed",
                    dir.display()
                )
            }
            Self::Damaged { path, at, what } => {
                let dir = path.parent().unwrap_or(path).display();
                write!(
                    f,
                    "{} is damaged at byte {at}: {what}; `sharecore store check {dir}` reports what is lost, `sharecore store salvage {dir} --to NEWDIR` keeps the rest",
                    path.display()
                )
            }
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::other(refusal.to_string())
    }
}
