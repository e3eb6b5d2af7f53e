//! Record batches v2 (KIP-98): headers, checksums, compression, records; building batches; rewriting batches without
//! some records; and batches of dead-letter records.
//!
//! No input is trusted: invalid bytes are a [`Fault`], never a panic and never unbounded memory.
#![forbid(unsafe_code)]

mod acquired;
mod batch;
mod build;
pub mod columns;
mod compression;
mod dead_letters;
mod expand;
mod fault;
pub mod layout;
mod record;
mod rewrite;
mod varint;
mod walk;

pub use acquired::{AcquiredRecords, Found, Missing, Offsets, OwnedHeaders, Span, Unordered};
pub use batch::{Batch, Batches, Header, TimestampType};
pub use build::{LocalHeaders, LocalRecord, Producer, headed_batch, local_batch, marker_batch};
pub use compression::{Codec, Compression, Compressor, compress, decompress};
pub use dead_letters::{Cause, DeadLetters, Origin, Range};
pub use expand::{EXPANDED_BYTES_MAX, Expander, check_lz4_frame};
pub use fault::Fault;
pub use record::{Headers, Outline, Record, Records};
pub use rewrite::{Rewrite, without_records};
pub use varint::{put_varint, varint_len};
pub use walk::{Seen, Walk};
