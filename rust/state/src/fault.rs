//! Why a record of the topic could not be read.

use std::fmt;

/// The fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// An unknown record type; Kafka skips such a record.
    Type(i16),
    /// An unknown version of a value.
    Version(i16),
    /// The key is malformed.
    Key(&'static str),
    /// The value is malformed.
    Value(&'static str),
    /// An invalid state batch.
    StateBatch,
    /// An update without a preceding snapshot: it belongs to a deleted one.
    NoSnapshot,
}

impl RecordFault {
    /// Whether bytes are damaged; other records may be skipped, as Kafka does.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Type(_) | Self::NoSnapshot)
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(id) => write!(f, "record type {id} is not known"),
            Self::Version(version) => write!(f, "version {version} of the value is not known"),
            Self::Key(what) => write!(f, "damaged key: {what}"),
            Self::Value(what) => write!(f, "damaged value: {what}"),
            Self::StateBatch => f.write_str("a state batch is impossible"),
            Self::NoSnapshot => f.write_str("an update without a snapshot before it"),
        }
    }
}

impl std::error::Error for RecordFault {}
