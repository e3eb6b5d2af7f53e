//! What a share fetch gets out of the partitions that it looks at.

use std::collections::VecDeque;

use crate::{Limits, Ration, Rations};

/// Whether a share partition has something for a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// There are records to acquire.
    Ready,
    /// There are none; its leader says when there may be some.
    Empty,
    /// There is no leader any more that could say so.
    Failed,
    /// Its state is loading.
    Loading,
}

/// What a partition gave to a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Bytes of records; none where nothing was acquired.
    pub bytes: usize,
    /// Records that were acquired.
    pub records: i64,
    /// Bytes that a thread reads now, and a later look gets.
    pub reading_bytes: i64,
}

/// The share partitions that a fetch looks at, in their order.
pub trait Partitions {
    /// One of them.
    type Partition;
    /// What ends the whole look.
    type Error;

    /// The next one.
    fn next(&mut self) -> Option<Self::Partition>;
    /// Whether one has something.
    fn readiness(&mut self, partition: &Self::Partition) -> Result<Readiness, Self::Error>;
    /// One has nothing: it is not looked at again before its leader says that it may have.
    fn empty(&mut self, partition: &Self::Partition) -> Result<(), Self::Error>;
    /// One has failed: the answer says so.
    fn failed(&mut self, partition: Self::Partition);
    /// Acquires records of one; keeps them, or the error of that partition, for the answer.
    fn acquire(
        &mut self,
        partition: Self::Partition,
        ration: Ration,
        limits: &Limits,
    ) -> Result<Given, Self::Error>;
}

/// The next partition that has something.
pub fn next_ready<P: Partitions>(partitions: &mut P) -> Result<Option<P::Partition>, P::Error> {
    while let Some(partition) = partitions.next() {
        match partitions.readiness(&partition)? {
            Readiness::Ready => return Ok(Some(partition)),
            Readiness::Empty => partitions.empty(&partition)?,
            Readiness::Failed => partitions.failed(partition),
            Readiness::Loading => {}
        }
    }
    Ok(None)
}

/// Acquires from partition to partition until the fetch has enough.
///
/// As many partitions as it may take records are known to have something before the first is asked, so that each of them has
/// its part of the bytes.
pub fn gather<P: Partitions>(partitions: &mut P, limits: &Limits) -> Result<(), P::Error> {
    let mut chosen = VecDeque::new();
    while i64::try_from(chosen.len()).is_ok_and(|chosen| chosen < limits.max_records) {
        match next_ready(partitions)? {
            Some(partition) => chosen.push_back(partition),
            None => break,
        }
    }
    if chosen.is_empty() {
        return Ok(());
    }
    debug_assert!(limits.max_records > 0, "nobody is asked for nothing");
    let mut rations = Rations::among(limits, chosen.len());
    while let Some(ration) = rations.ration() {
        let partition = match chosen.pop_front() {
            Some(partition) => partition,
            None => match next_ready(partitions)? {
                Some(partition) => partition,
                None => break,
            },
        };
        let given = partitions.acquire(partition, ration, limits)?;
        debug_assert!(given.records >= 0, "records are taken, not given back");
        debug_assert!(
            (given.records == 0) == (given.bytes == 0),
            "records have bytes, and bytes are of records: {given:?}"
        );
        debug_assert!(
            !limits.record_limit || given.records <= ration.max_records,
            "more than an exact number of records: {given:?}, {ration:?}"
        );
        rations.read_later(given.reading_bytes);
        if given.records > 0 {
            rations.take(given.bytes, given.records);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
