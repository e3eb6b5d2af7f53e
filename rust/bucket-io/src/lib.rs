//! Requests to a bucket: threads that send them, without any decisions.
//!
//! A request is sent once. Anything but a definite answer is `Unknown`: the code in `sharecore-bucket` decides what is
//! sent again, so that a simulation sees each attempt. No error, log line or `Debug` output contains a credential.
#![forbid(unsafe_code)]

#[cfg(feature = "cloud")]
mod cloud;
mod directory;
mod place;
mod transport;

pub use place::{Place, Settings};
pub use transport::Transport;

/// Whether this build supports S3, Google Cloud Storage and Azure, and not only directories.
pub const HAS_CLOUDS: bool = cfg!(feature = "cloud");
