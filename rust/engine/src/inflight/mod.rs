//! The run-length interval map of in-flight records.

mod block;
mod edit;
mod leaf;
mod map;
mod mask;
mod rewrite;
mod run;
mod set;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use map::{Cursor, RunMap};
pub(crate) use run::{Cell, LeaseId, Run};
