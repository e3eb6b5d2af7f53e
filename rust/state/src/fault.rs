//! Why a record of the topic could not be read.

use std::fmt;

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// A type that this version does not know; Kafka passes such a record over.
    Type(i16),
    /// A version of a value that this version does not know.
    Version(i16),
    /// The key's bytes are no key.
    Key(&'static str),
    /// The value's bytes are no value.
    Value(&'static str),
    /// An impossible state batch.
    StateBatch,
    /// An update, and no snapshot before it: it belongs to one that is no longer there.
    NoSnapshot,
}

impl RecordFault {
    /// Whether bytes are damaged; otherwise the record may be passed over, as Kafka does.
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
