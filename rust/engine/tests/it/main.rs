//! All integration tests of the engine in one program, since each program would be compiled and linked with the whole crate.

mod backoff;
mod combiner;
mod expiry;
mod keep;
mod lateness;
mod long_runs;
mod models;
mod open_writes;
mod order;
mod random_operations;
mod ready;
mod timers;
mod worked_examples;
