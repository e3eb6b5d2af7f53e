//! Timers on integer ticks.

mod wheel;

pub use wheel::Wheel;
