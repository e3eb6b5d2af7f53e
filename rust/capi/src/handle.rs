//! Partitions by number: a slot in a table and its generation.

use std::sync::{Arc, PoisonError, RwLock};

use sharecore_engine::Engine;
use sharecore_guard::Guarded;

use crate::status::{Failure, SharecoreStatus};

/// A partition: a number, not an address; 0 is null. Thread-safe: calls on one partition are serialized.
pub type SharecorePartition = u64;

#[derive(Debug)]
struct Place {
    /// Counts the partitions in this slot; never 0, so that no partition has number 0.
    generation: u32,
    held: Option<Arc<Guarded>>,
}

#[derive(Debug)]
struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
}

static TABLE: RwLock<Table> = RwLock::new(Table {
    places: Vec::new(),
    free: Vec::new(),
});

fn split(number: SharecorePartition) -> (usize, u32) {
    ((number & 0xffff_ffff) as usize, (number >> 32) as u32)
}

fn unknown(number: SharecorePartition) -> Failure {
    if number == 0 {
        return Failure::new(SharecoreStatus::BadPartition, "the partition is null");
    }
    Failure::new(
        SharecoreStatus::BadPartition,
        format_args!("partition {number:#x} was freed or never created"),
    )
}

/// Assigns a partition its number.
pub(crate) fn insert(partition: impl Into<Engine>) -> Result<SharecorePartition, Failure> {
    let held = Some(Arc::new(Guarded::new(partition)));
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let index = if let Some(index) = table.free.pop() {
        table.places[index as usize].held = held;
        index
    } else {
        let index = u32::try_from(table.places.len()).map_err(|_| {
            Failure::new(
                SharecoreStatus::BadArgument,
                "too many partitions; free some",
            )
        })?;
        table.places.push(Place {
            generation: 1,
            held,
        });
        index
    };
    let generation = table.places[index as usize].generation;
    Ok(u64::from(generation) << 32 | u64::from(index))
}

pub(crate) fn find(number: SharecorePartition) -> Result<Arc<Guarded>, Failure> {
    let (index, generation) = split(number);
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table
        .places
        .get(index)
        .filter(|place| place.generation == generation)
        .and_then(|place| place.held.clone())
        .ok_or_else(|| unknown(number))
}

/// Removes a partition from the table, after calls in progress end.
pub(crate) fn remove(number: SharecorePartition) -> Result<(), Failure> {
    let (index, generation) = split(number);
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let held = table
        .places
        .get_mut(index)
        .filter(|place| place.generation == generation)
        .and_then(|place| place.held.take())
        .ok_or_else(|| unknown(number))?;
    // a slot whose generations are used up stays empty: a number must never be reused
    if let Some(next) = generation.checked_add(1) {
        table.places[index].generation = next;
        table.free.push(index as u32);
    }
    drop(table);
    drop(held);
    Ok(())
}
