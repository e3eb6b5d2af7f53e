//! Sockets of one thread: which are ready, what they received, and what is still to be sent.
//!
//! Nothing here blocks that thread. A `Poller` is readable itself while one of its sockets is ready, so an event loop that
//! somebody else runs can watch it like a single socket. `Senders` are other threads that send for it when it has much to send
//! at once: half of the time that a small request takes is spent in the system's calls for sockets.

mod output;
mod poller;
mod senders;
mod socket;

pub use output::{Mark, Output};
pub use poller::{Poller, Ready};
pub use senders::{SendJob, Senders};
pub use socket::{Received, Socket};
