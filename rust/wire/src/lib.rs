//! Kafka's protocol as bytes: frames out of a stream, requests' headers, and messages by their schemas.
//!
//! Nothing here trusts a byte: every length is checked against the bytes that are there before memory is reserved for
//! it, and what cannot be read is a [`Malformed`], never a panic. What a message becomes is up to the [`Build`] that is
//! handed in; those of records have structs of their own in [`typed`].
#![forbid(unsafe_code)]

mod count;
mod frame;
mod header;
mod input;
mod java_hash;
mod layout;
mod output;
mod read;
mod room;
pub mod typed;
mod unread;
mod value;

pub use count::count_entries;
pub use frame::{Cutter, FrameTooLarge, Piece, SIZE_BYTES};
pub use header::{Header, read_header};
pub use input::{Input, Malformed};
pub use java_hash::java_hash;
pub use layout::{Field, Kind, Layout};
pub use output::Output;
pub use read::{Build, STRING_BYTES_MAX, read};
pub use room::{Room, SMALL_BYTES, Wanted};
pub use unread::Unread;
pub use value::{Held, Sink, Unfit, Value, inner, record, write};
