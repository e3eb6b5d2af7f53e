//! What can go wrong: refusals a client hears about, and failures of the store itself.

use std::{fmt, io, path::PathBuf};

/// A request that cannot be served; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are not one whole, intact record batch.
    CorruptBatch(String),
    /// An intact batch that no client may write.
    InvalidRecord(String),
    /// Compressed in a way that the version of the request does not know.
    UnsupportedCompression,
    /// The batch exceeds the log's limit of bytes.
    TooLarge {
        /// Size of the batch.
        size: usize,
        /// `max.message.bytes` of the log.
        limit: usize,
    },
    /// The records of the batch expand further than readers follow.
    ExpandsTooFar {
        /// Most bytes that readers expand a batch to.
        limit: usize,
    },
    /// Records that the log does not take, the first of them by their places in the batch.
    Records(RefusedRecords),
    /// The sequence number does not continue what the producer wrote before.
    OutOfOrderSequence(String),
    /// A producer with a newer epoch has taken over.
    InvalidProducerEpoch(String),
    /// A batch outside of the transaction that its producer has open.
    InvalidTransaction(String),
    /// A transaction marker from a coordinator that has been replaced.
    CoordinatorFenced(String),
    /// The offset lies outside the log.
    OffsetOutOfRange(String),
    /// No such log, or it is being deleted.
    UnknownLog(u64),
    /// Too much is waiting to be written; try again.
    Busy,
    /// The disk failed; what was staged is gone.
    Storage(String),
    /// A batch on the disk is not as it was written.
    Damaged(String),
}

/// Why a log does not take a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// Its timestamp is farther from now than the log allows.
    Timestamp,
    /// It has no key, and the log is compacted.
    NoKey,
}

/// The records of a batch that a log does not take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedRecords {
    /// How many there are.
    pub count: usize,
    /// The first of them.
    pub first: Vec<(i32, RecordFault)>,
    /// Whether the timestamp of any is what is wrong.
    pub any_timestamp: bool,
}

/// How many refused records of a batch are named at most.
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
    /// The error code of the Kafka protocol.
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
            Self::Busy => f.write_str("the store is behind; too many bytes wait to be written"),
        }
    }
}

impl std::error::Error for Refusal {}

/// The store cannot be opened or used.
#[derive(Debug)]
pub enum StoreError {
    /// Another process has the directory.
    Locked(PathBuf),
    /// A newer release has written to the directory.
    Newer {
        /// The directory.
        dir: PathBuf,
        /// What it is written in.
        format: u32,
        /// The release that wrote it.
        release: String,
    },
    /// A file does not hold what was written to it.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        at: u64,
        /// What was expected there.
        what: String,
    },
    /// The operating system refused.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
}

impl StoreError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Whether reading a directory that another process writes to may succeed the next time.
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
                    "{} is written in format {format}, by sharecore {release}; this is sharecore {this}, which reads \
                     formats up to {known}: run {release} or later, or restore a copy from before the upgrade; \
                     nothing was changed",
                    dir.display()
                )
            }
            Self::Damaged { path, at, what } => {
                let dir = path.parent().unwrap_or(path).display();
                write!(
                    f,
                    "{} is damaged at byte {at}: {what}; `sharecore store check {dir}` tells what is lost, \
                     `sharecore store salvage {dir} --to NEWDIR` keeps the rest",
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
