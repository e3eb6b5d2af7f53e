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
    let error = |batches, index, partitions, may_read| {
        let claim = Claim {
            id: id(1, index),
            batches,
        };
        let Ok(error) = refusal::<Infallible>(&claim, false, partitions, || Ok(may_read));
        error
    };
    assert_eq!(error(&good, 1, Some(2), true), None);
    assert_eq!(error(&[], 0, Some(1), true), None);
    let unknown_id = Some(Refused::UnknownTopicId);
    assert_eq!(error(&bad, 9, None, false), unknown_id);
    let invalid = Some(Refused::InvalidRequest);
    assert_eq!(error(&bad, 9, Some(2), false), invalid);
    let forbidden = Some(Refused::TopicAuthorizationFailed);
    assert_eq!(error(&good, 9, Some(2), false), forbidden);
    for index in [-1, 2, i32::MAX] {
        let unknown = Some(Refused::UnknownTopicOrPartition);
        assert_eq!(error(&good, index, Some(2), true), unknown);
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

/// Topics by their first byte: 1 has two partitions, the first of which is led here; 2 has two, none led here; 3 may not be
/// read; others do not exist.
#[derive(Default)]
struct Known {
    counted: Vec<u8>,
    asked: Vec<u8>,
    is_open: bool,
}

impl Places for Known {
    type Leader = char;
    type Error = Infallible;

    fn leader(&mut self, id: PartitionId) -> Result<Option<char>, Infallible> {
        Ok((id.0[0] == 1 && id.1 == 0).then_some('a'))
    }

    fn partitions(&mut self, topic: [u8; 16]) -> Result<Option<i64>, Infallible> {
        self.counted.push(topic[0]);
        Ok((topic[0] <= 3).then_some(2))
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn may_read(&mut self, topic: [u8; 16]) -> Result<bool, Infallible> {
        self.asked.push(topic[0]);
        Ok(topic[0] != 3)
    }
}

#[test]
fn a_walk_returns_refusals_leaders_and_what_is_named_beside_them() {
    let good = [batch(0, 0, &[1])];
    let claims = [
        (1, 0, true),
        (1, 1, false),
        (2, 1, true),
        (2, 9, true),
        (3, 0, true),
        (9, 0, true),
    ];
    let claims = claims.map(|(topic, index, some)| Claim {
        id: id(topic, index),
        batches: if some { &good[..] } else { &[] },
    });
    let mut known = Known::default();
    let Ok(walked) = walk(&mut known, claims, false);
    let led: Vec<_> = walked
        .led
        .iter()
        .map(|(claim, leader)| (claim.id, *leader))
        .collect();
    assert_eq!(led, [(id(1, 0), Some('a')), (id(2, 1), None)]);
    assert_eq!(walked.beside, [id(1, 1)]);
    let refused: Vec<_> = walked
        .refused
        .iter()
        .map(|(id, why)| (id.0[0], why.code()))
        .collect();
    assert_eq!(refused, [(2, 3), (3, 29), (9, 100)]);
    assert_eq!(known.asked, [1, 2, 3], "each topic is asked for once");
    assert_eq!(known.counted, [1, 2, 3, 9]);
}

#[test]
fn where_everybody_may_read_nobody_is_asked() {
    let good = [batch(0, 0, &[1])];
    let mut known = Known {
        is_open: true,
        ..Known::default()
    };
    let claim = Claim {
        id: id(3, 1),
        batches: &good,
    };
    let Ok(walked) = walk(&mut known, [claim], false);
    assert_eq!((walked.led.len(), walked.refused.len()), (1, 0));
    assert!(known.asked.is_empty());
}

#[test]
fn nothing_is_named_beside_nothing() {
    let claim = Claim {
        id: id(1, 0),
        batches: &[],
    };
    let Ok(walked) = walk(&mut Known::default(), [claim], false);
    assert!(walked.led.is_empty() && walked.beside.is_empty() && walked.refused.is_empty());
}
