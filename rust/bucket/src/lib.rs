//! The objects that sharecore keeps in a bucket, and the protocol by which one broker at a time writes them.
//!
//! Everything here is sans-I/O: input is answers and the time, output is calls for a transport. Safety rests on one
//! operation: creating an object unless its name exists ([`What::Create`]). Nothing here reads a clock, opens a
//! connection or starts a thread.
//!
//! The journal is a sequence of places. A place is created once, by one writer: [`Walk`] defines their order,
//! [`Claiming`] is how a process becomes the writer, [`Shipper`] how it writes.
#![forbid(unsafe_code)]

mod call;
mod checkpoint;
mod claim;
mod fields;
pub mod inspect;
mod memory;
pub mod mistakes;
pub mod names;
mod object;
pub mod probe;
mod removal;
mod retry;
mod shipper;
mod until;
mod walk;

pub use call::{Answer, Body, Bucket, Call, PAGE_MIN, What, ask_until_definite, list_all};
pub use checkpoint::{
    Checkpoint, FOREIGN_HOME, Folded, Manifest, Segment, counted, home, kept, may_be_swept,
    read_home,
};
pub use claim::{Claimant, Claimed, Claiming};
pub use memory::MemoryBucket;
pub use object::{
    Claim, Frames, HEADER, Header, Kind, Object, Writer, object_claim, read, read_header,
};
pub use removal::remove;
pub use retry::Retried;
pub use shipper::{Fenced, Shipped, Shipper};
pub use until::Until;
pub use walk::{HOME_WINDOW, Step, Walk};
