//! Sockets of one thread: which are ready, what they received, and what is still to be sent.
//!
//! Nothing here blocks, and nothing is locked. A `Poller` is readable itself while one of its sockets is ready, so an event loop
//! that somebody else runs can watch it like a single socket.

mod output;
mod poller;
mod socket;

pub use output::{Mark, Output};
pub use poller::{Poller, Ready};
pub use socket::{Received, Socket};
