//! What a request acknowledges, and how much of it gets as far as the leaders of share partitions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sharecore_engine::{AckBatch, AckType};
use sharecore_wire::typed::common::AcknowledgementBatch;

use crate::PartitionId;

/// The acknowledge type that renews a lock; those above it there are not.
const RENEW: u8 = 4;

const _: () = assert!(
    RENEW == AckType::Renew as u8,
    "a number of the protocol's, which the engine knows, too"
);

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
const INVALID_REQUEST: i16 = 42;
const UNKNOWN_TOPIC_ID: i16 = 100;

/// What is acknowledged of one partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim<'m, 'a> {
    /// The partition.
    pub id: PartitionId,
    /// In the order of the request.
    pub batches: &'m [AcknowledgementBatch<'a>],
}

/// Why acknowledgements of a partition do not get as far as its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no topic of this id.
    UnknownTopicId,
    /// The batches cannot stand as they are.
    InvalidRequest,
    /// The client may not read the topic.
    TopicAuthorizationFailed,
    /// The topic has no such partition.
    UnknownTopicOrPartition,
}

impl Refused {
    /// Kafka's number.
    pub fn code(self) -> i16 {
        match self {
            Self::UnknownTopicId => UNKNOWN_TOPIC_ID,
            Self::InvalidRequest => INVALID_REQUEST,
            Self::TopicAuthorizationFailed => TOPIC_AUTHORIZATION_FAILED,
            Self::UnknownTopicOrPartition => UNKNOWN_TOPIC_OR_PARTITION,
        }
    }
}

/// Those of a request whose partitions are named once each: where one is named twice, its last batches count, at the
/// place of its first.
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

/// Whether types are known and of the right number, and batches ascend.
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

/// Why acknowledgements do not get as far as the leader, where they do not.
///
/// `partitions`: how many the topic has, `None` where there is no such topic; `may_read`: whether the client may read it,
/// asked where that matters.
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

/// What acknowledgements are held against, and who gets them.
pub trait Places {
    /// The leader of a share partition.
    type Leader;
    /// What ends the whole walk.
    type Error;

    /// The leader of a share partition, if it has one.
    fn leader(&mut self, id: PartitionId) -> Result<Option<Self::Leader>, Self::Error>;

    /// How many partitions a topic has; `None` where there is no such topic.
    fn partitions(&mut self, topic: [u8; 16]) -> Result<Option<i64>, Self::Error>;

    /// Whether the client may read all topics.
    fn is_open(&self) -> bool;

    /// Whether the client may read a topic.
    fn may_read(&mut self, topic: [u8; 16]) -> Result<bool, Self::Error>;
}

/// What becomes of the acknowledgements of a request.
#[derive(Debug)]
pub struct Walked<'m, 'a, L> {
    /// Those that get no further, and why.
    pub refused: Vec<(PartitionId, Refused)>,
    /// Those that leaders get; where there is none, nothing of the partition is leased.
    pub led: Vec<(Claim<'m, 'a>, Option<L>)>,
    /// Partitions of which nothing is acknowledged, where something is of others: the answer names them as well, as with
    /// Kafka.
    pub beside: Vec<PartitionId>,
}

/// Walks through what a request acknowledges; each topic is looked at once, however many partitions of it are named.
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

/// The batches as the engine takes them.
pub fn batches_of<'a>(batches: &[AcknowledgementBatch<'a>]) -> impl Iterator<Item = AckBatch<'a>> {
    debug_assert!(are_sound(batches, true), "who is refused gets no further");
    batches.iter().map(|batch| AckBatch {
        first: batch.first_offset,
        last: batch.last_offset,
        types: batch.acknowledge_types,
    })
}

#[cfg(test)]
mod tests;
