//! Why bytes are not valid records.

use std::fmt;

/// What is wrong with a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The checksum does not match the bytes.
    Checksum,
    /// A format other than v2.
    Magic(u8),
    /// A compression type unknown to Kafka.
    Compression(i16),
    /// The compressed bytes are damaged.
    Decompress(String),
    /// The expanded records exceed the limit.
    TooLarge {
        /// The caller's limit.
        limit: usize,
    },
    /// A length or a count that does not match the bytes.
    Malformed(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("the checksum does not match the bytes"),
            Self::Magic(magic) => write!(f, "record format {magic} is not supported, only 2 is"),
            Self::Compression(id) => write!(f, "compression type {id} is unknown"),
            Self::Decompress(what) => write!(f, "the records cannot be decompressed: {what}"),
            Self::TooLarge { limit } => {
                write!(f, "the records expand to more than {limit} bytes")
            }
            Self::Malformed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}
