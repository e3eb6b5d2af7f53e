//! Gathering records from the partitions of a share fetch.

use std::collections::VecDeque;

use crate::{Limits, Ration, Rations};

/// Whether a share partition has records for a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// There are records to acquire.
    Ready,
    /// None; its leader notifies when there may be some.
    Empty,
    /// The leader is gone and cannot notify.
    Failed,
    /// Its state is loading.
    Loading,
}

/// What a fetch got from a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Bytes of records, if any were acquired.
    pub bytes: usize,
    /// Number of acquired records.
    pub records: i64,
    /// Bytes that a thread is reading for a later look.
    pub reading_bytes: i64,
}

/// The share partitions of a fetch, in order.
pub trait Partitions {
    /// One of them.
    type Partition;
    /// An error that ends the look.
    type Error;

    /// The next one.
    fn next(&mut self) -> Option<Self::Partition>;
    /// Whether one has something.
    fn readiness(&mut self, partition: &Self::Partition) -> Result<Readiness, Self::Error>;
    /// Note that one is empty: it is skipped until its leader notifies.
    fn empty(&mut self, partition: &Self::Partition) -> Result<(), Self::Error>;
    /// Note that one failed, for the response.
    fn failed(&mut self, partition: Self::Partition);
    /// Acquire records from one; keep them, or its error, for the response.
    fn acquire(
        &mut self,
        partition: Self::Partition,
        ration: Ration,
        limits: &Limits,
    ) -> Result<Given, Self::Error>;
}

/// Return the next partition with records.
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

/// Acquire from partition after partition until the fetch has enough.
///
/// Up to `max_records` fetchable partitions are found before the first acquisition, so that bytes can be split among them.
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
