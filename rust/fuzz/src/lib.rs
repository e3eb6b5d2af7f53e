//! What is fuzzed: each target takes any bytes at all and panics where something is wrong.
//!
//! `make fuzz` builds them with libFuzzer and lets them look for new ways through the code; `cargo test` runs each on a
//! fixed set of random bytes, so that a target never rots.
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
