//! Kafka's protocol as bytes: frames of a stream, request headers, and messages by schema.
//!
//! No input is trusted: every length is checked against the remaining bytes before memory is reserved, and unreadable
//! input is a [`Malformed`], never a panic. The caller's [`Build`] decides what a message becomes; messages with
//! records have their own structs in [`typed`].
#![forbid(unsafe_code)]

mod count;
mod frame;
mod header;
mod input;
mod java_hash;
mod layout;
mod outgoing;
mod output;
mod pipeline;
mod read;
mod room;
pub mod typed;
mod unread;
mod value;

pub use count::count_entries;
pub use frame::{Cutter, FrameTooLarge, Piece, SIZE_BYTES};
pub use header::{Header, read_header, response_head};
pub use input::{Input, Malformed};
pub use java_hash::java_hash;
pub use layout::{Field, Kind, Layout};
pub use outgoing::{Outgoing, Unsent};
pub use output::Output;
pub use pipeline::{Next, Pause, Pipeline, PipelineState, charged};
pub use read::{Build, STRING_BYTES_MAX, read};
pub use room::{Room, SMALL_BYTES, Wanted};
pub use unread::{Readers, Unread};
pub use value::{Held, Sink, Unfit, Value, inner, record, write};
