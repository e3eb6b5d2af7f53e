//! Fuzz targets: each accepts any bytes and panics on a fault.
//!
//! `make fuzz` builds them with libFuzzer; `cargo test` runs each on a fixed set of random bytes, so that no target stops
//! working unnoticed.
#![forbid(unsafe_code)]

#[path = "../../wire/tests/models/agree.rs"]
mod agree;
mod bucket;
#[path = "../../engine/tests/it/models/combined.rs"]
mod combined;
mod combiner;
mod messages;
mod numbers;
mod operations;
mod records;
mod recovery;
mod share_state;
mod typed;
#[path = "../../engine/tests/it/models/world.rs"]
mod world;

pub use bucket::bucket;
pub use combiner::combiner;
pub use messages::messages;
pub use numbers::numbers;
pub use operations::operations;
pub use records::records;
pub use recovery::recovery;
pub use share_state::share_state;
pub use typed::typed;
