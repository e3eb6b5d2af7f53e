//! Acknowledgements of a request: which are refused, and which reach share-partition leaders.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sharecore_engine::{AckBatch, AckType};
use sharecore_wire::typed::common::AcknowledgementBatch;

use crate::PartitionId;
use crate::planted::{Bug, is_planted};

/// The acknowledge type that renews a lock; the highest one.
const RENEW: u8 = 4;

const _: () = assert!(
    RENEW == AckType::Renew as u8,
    "a number of the protocol's, which the engine knows, too"
);

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
const INVALID_REQUEST: i16 = 42;
const UNKNOWN_TOPIC_ID: i16 = 100;

/// Acknowledgements of one partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim<'m, 'a> {
    /// The partition.
    pub id: PartitionId,
    /// In the order of the request.
    pub batches: &'m [AcknowledgementBatch<'a>],
}

/// Why acknowledgements of a partition are refused before they reach its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no topic of this id.
    UnknownTopicId,
    /// The batches are invalid.
    InvalidRequest,
    /// The client may not read the topic.
    TopicAuthorizationFailed,
    /// The topic has no such partition.
    UnknownTopicOrPartition,
}

impl Refused {
    /// Kafka's error code.
    pub fn code(self) -> i16 {
        match self {
            Self::UnknownTopicId => UNKNOWN_TOPIC_ID,
            Self::InvalidRequest => INVALID_REQUEST,
            Self::TopicAuthorizationFailed => TOPIC_AUTHORIZATION_FAILED,
            Self::UnknownTopicOrPartition => UNKNOWN_TOPIC_OR_PARTITION,
        }
    }
}

/// Acknowledgements by partition. If a partition repeats, its last entry wins, in the position of its first.
fn last_of_each<'m, 'a: 'm>(claims: impl IntoIterator<Item = Claim<'m, 'a>>) -> Vec<Claim<'m, 'a>> {
    let mut kept: Vec<Claim<'m, 'a>> = claims.into_iter().collect();
    if kept.len() < 2 {
        return kept;
    }
    let mut places = HashMap::with_capacity(kept.len());
    let mut count = 0;
    for next in 0..kept.len() {
        let claim = kept[next];
        match places.entry(claim.id) {
            Entry::Occupied(place) => kept[*place.get()] = claim,
            Entry::Vacant(place) => {
                place.insert(count);
                kept[count] = claim;
                count += 1;
            }
        }
    }
    kept.truncate(count);
    debug_assert_eq!(kept.len(), places.len(), "each is kept once");
    debug_assert!(
        places.iter().all(|(id, place)| kept[*place].id == *id),
        "each is at its place"
    );
    kept
}

/// Whether acknowledge types are known, their number is right, and batches ascend.
pub fn are_sound(batches: &[AcknowledgementBatch<'_>], may_renew: bool) -> bool {
    let most = if may_renew { RENEW } else { RENEW - 1 };
    let mut end = -1;
    for batch in batches {
        let (first, last) = (batch.first_offset, batch.last_offset);
        let count = batch.acknowledge_types.len();
        let fits = count == 1
            || i64::try_from(count).is_ok_and(|count| last.checked_sub(first) == Some(count - 1));
        let known = batch.acknowledge_types.iter().all(|each| *each <= most);
        if first < end || last < first || !fits || !known {
            return false;
        }
        end = last;
    }
    true
}

/// Return why acknowledgements are refused before they reach the leader, if they are.
///
/// `partitions`: the topic's partition count, `None` if it does not exist; `may_read`: whether the client may read it,
/// called only if needed.
fn refusal<E>(
    claim: &Claim<'_, '_>,
    may_renew: bool,
    partitions: Option<i64>,
    may_read: impl FnOnce() -> Result<bool, E>,
) -> Result<Option<Refused>, E> {
    let Some(partitions) = partitions else {
        return Ok(Some(Refused::UnknownTopicId));
    };
    if !are_sound(claim.batches, may_renew) {
        return Ok(Some(Refused::InvalidRequest));
    }
    if !may_read()? {
        return Ok(Some(Refused::TopicAuthorizationFailed));
    }
    let is_there = (0..partitions).contains(&claim.id.1.into());
    Ok((!is_there).then_some(Refused::UnknownTopicOrPartition))
}

/// What acknowledgements are checked against, and the leaders that process them.
pub trait Places {
    /// The leader of a share partition.
    type Leader;
    /// An error that ends the request.
    type Error;

    /// Return the leader of a share partition, if it has one.
    fn leader(&mut self, id: PartitionId) -> Result<Option<Self::Leader>, Self::Error>;

    /// Return a topic's partition count; `None` if it does not exist.
    fn partitions(&mut self, topic: [u8; 16]) -> Result<Option<i64>, Self::Error>;

    /// Whether the client may read all topics.
    fn is_open(&self) -> bool;

    /// Whether the client may read a topic.
    fn may_read(&mut self, topic: [u8; 16]) -> Result<bool, Self::Error>;
}

/// The acknowledgements of a request, sorted by outcome.
#[derive(Debug)]
pub struct Walked<'m, 'a, L> {
    /// Refused ones, with the reason.
    pub refused: Vec<(PartitionId, Refused)>,
    /// Those for leaders; without a leader, no record of the partition is acquired.
    pub led: Vec<(Claim<'m, 'a>, Option<L>)>,
    /// Partitions without acknowledgements in a request that acknowledges others: the response names them too, as Kafka's
    /// does.
    pub beside: Vec<PartitionId>,
}

/// Check the acknowledgements of a request; each topic is looked up once.
pub fn walk<'m, 'a: 'm, P: Places>(
    places: &mut P,
    claims: impl IntoIterator<Item = Claim<'m, 'a>>,
    may_renew: bool,
) -> Result<Walked<'m, 'a, P::Leader>, P::Error> {
    let (mut readable, mut counted) = (HashMap::new(), None);
    let mut walked = Walked {
        refused: Vec::new(),
        led: Vec::new(),
        beside: Vec::new(),
    };
    for claim in last_of_each(claims) {
        let (id, topic) = (claim.id, claim.id.0);
        let leader = places.leader(id)?;
        let partitions = match (&leader, counted) {
            // who leads a partition knows that it is there
            (Some(_), _) => Some(i64::from(id.1) + 1),
            (None, Some((known, count))) if known == topic => count,
            (None, _) => {
                let count = places.partitions(topic)?;
                counted = Some((topic, count));
                count
            }
        };
        let may_read = || -> Result<bool, P::Error> {
            if places.is_open() {
                return Ok(true);
            }
            match readable.entry(topic) {
                Entry::Occupied(known) => Ok(*known.get()),
                Entry::Vacant(new) => Ok(*new.insert(places.may_read(topic)?)),
            }
        };
        if let Some(refused) = refusal(&claim, may_renew, partitions, may_read)? {
            walked.refused.push((id, refused));
        } else if claim.batches.is_empty() {
            walked.beside.push(id);
        } else {
            walked.led.push((claim, leader));
        }
    }
    if walked.led.is_empty() {
        walked.beside.clear();
    }
    Ok(walked)
}

/// Convert the batches for the engine.
pub fn batches_of<'a>(batches: &[AcknowledgementBatch<'a>]) -> impl Iterator<Item = AckBatch<'a>> {
    debug_assert!(are_sound(batches, true), "who is refused gets no further");
    let count = batches.len();
    let kept = count - usize::from(count > 1 && is_planted(Bug::LastBatchDropped));
    batches[..kept].iter().map(|batch| AckBatch {
        first: batch.first_offset,
        last: batch.last_offset,
        types: batch.acknowledge_types,
    })
}

#[cfg(test)]
mod tests;
