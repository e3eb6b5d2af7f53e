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

/// Those of a request whose partitions are named once each: where one is named twice, its last batches count, at the
/// place of its first.
pub fn last_of_each<'m, 'a: 'm>(
    claims: impl IntoIterator<Item = Claim<'m, 'a>>,
) -> Vec<Claim<'m, 'a>> {
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
pub fn refusal<E>(
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
mod tests {
    use std::convert::Infallible;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn batch(first_offset: i64, last_offset: i64, types: &[u8]) -> AcknowledgementBatch<'_> {
        AcknowledgementBatch {
            first_offset,
            last_offset,
            acknowledge_types: types,
        }
    }

    fn id(topic: u8, index: i32) -> PartitionId {
        ([topic; 16], index)
    }

    #[test]
    fn batches_that_may_stand() {
        for (batches, with_renewals) in [
            (vec![], true),
            (vec![batch(0, 0, &[1])], true),
            (vec![batch(0, 9, &[1])], true),
            (vec![batch(0, 2, &[0, 2, 3])], true),
            (vec![batch(0, 1, &[1]), batch(2, 2, &[3])], true),
            (vec![batch(5, 5, &[1]), batch(5, 6, &[1])], true),
            (vec![batch(i64::MAX, i64::MAX, &[1])], true),
            (vec![batch(0, 0, &[4])], false),
            (vec![batch(0, 2, &[1, 4, 1])], false),
        ] {
            assert!(are_sound(&batches, true), "{batches:?}");
            assert_eq!(are_sound(&batches, false), with_renewals, "{batches:?}");
        }
    }

    #[test]
    fn batches_that_may_not_stand() {
        for batches in [
            vec![batch(0, 0, &[])],
            vec![batch(0, 0, &[5])],
            vec![batch(0, 0, &[255])],
            vec![batch(0, 2, &[1, 1])],
            vec![batch(0, 0, &[1, 1])],
            vec![batch(1, 0, &[1])],
            vec![batch(-2, 0, &[1])],
            vec![batch(3, 4, &[1]), batch(2, 5, &[1])],
            vec![batch(i64::MIN, i64::MAX, &[1, 1])],
        ] {
            assert!(!are_sound(&batches, true), "{batches:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong_first() {
        let good = [batch(0, 0, &[1])];
        let bad = [batch(1, 0, &[1])];
        let told = |batches, index, partitions, may_read| {
            let claim = Claim {
                id: id(1, index),
                batches,
            };
            let Ok(told) = refusal::<Infallible>(&claim, false, partitions, || Ok(may_read));
            told
        };
        assert_eq!(told(&good, 1, Some(2), true), None);
        assert_eq!(told(&[], 0, Some(1), true), None);
        let unknown_id = Some(Refused::UnknownTopicId);
        assert_eq!(told(&bad, 9, None, false), unknown_id);
        let invalid = Some(Refused::InvalidRequest);
        assert_eq!(told(&bad, 9, Some(2), false), invalid);
        let forbidden = Some(Refused::TopicAuthorizationFailed);
        assert_eq!(told(&good, 9, Some(2), false), forbidden);
        for index in [-1, 2, i32::MAX] {
            let unknown = Some(Refused::UnknownTopicOrPartition);
            assert_eq!(told(&good, index, Some(2), true), unknown);
        }
    }

    #[test]
    fn rights_are_not_asked_for_where_something_else_is_wrong() {
        let never = || -> Result<bool, &str> { Err("asked") };
        let bad = [batch(1, 0, &[1])];
        let claim = Claim {
            id: id(1, 0),
            batches: &bad,
        };
        assert!(refusal(&claim, false, None, never).is_ok());
        assert!(refusal(&claim, false, Some(1), never).is_ok());
        let good = Claim {
            batches: &[],
            ..claim
        };
        assert_eq!(refusal(&good, false, Some(1), never), Err("asked"));
    }

    proptest! {
        #[test]
        fn each_partition_keeps_its_first_place_and_its_last_batches(
            named in vec((0_u8..3, 0_i32..3, 0_i64..1000), 0..12),
        ) {
            let batches: Vec<_> = named.iter().map(|(_, _, offset)| [batch(*offset, *offset, &[1])]).collect();
            let claims = named.iter().zip(&batches).map(|((topic, index, _), batches)| Claim {
                id: id(*topic, *index),
                batches,
            });
            let mut expected: Vec<Claim<'_, '_>> = Vec::new();
            for claim in claims.clone() {
                match expected.iter_mut().find(|each| each.id == claim.id) {
                    Some(each) => *each = claim,
                    None => expected.push(claim),
                }
            }
            prop_assert_eq!(last_of_each(claims), expected);
        }

        #[test]
        fn sound_batches_cover_what_they_say(
            spans in vec((0_i64..20, -2_i64..5, 0_usize..5, 0_u8..6), 0..5),
            may_renew: bool,
        ) {
            let types = [[0; 5], [1; 5], [2; 5], [3; 5], [4; 5], [5; 5]];
            let batches: Vec<_> = spans
                .iter()
                .map(|(first, length, count, kind)| batch(*first, first + length, &types[usize::from(*kind)][..*count]))
                .collect();
            if are_sound(&batches, may_renew) {
                for batch in &batches {
                    let offsets = batch.last_offset - batch.first_offset + 1;
                    let types = batch.acknowledge_types;
                    prop_assert!(offsets > 0);
                    prop_assert!(types.len() == 1 || types.len() as i64 == offsets);
                    prop_assert!(types.iter().all(|each| *each < 4 || (*each == 4 && may_renew)));
                }
                prop_assert!(batches.windows(2).all(|pair| pair[0].last_offset <= pair[1].first_offset));
            }
        }
    }
}
