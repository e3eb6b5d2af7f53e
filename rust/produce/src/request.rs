//! The batches of a request.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sharecore_records::layout::{MAGIC, MAGIC_AT, TRANSACTIONAL, attributes};
use sharecore_wire::typed::produce::ProduceRequest;

use crate::answer::Refused;

/// The first version of Produce with zstd.
const ZSTD_SINCE: i16 = 7;
/// The first version of Produce with topic IDs.
const BY_ID_SINCE: i16 = 13;

/// How a request names a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicName {
    /// By ID.
    Id([u8; 16]),
    /// By name.
    Name(Box<str>),
}

/// A topic with the batches of its partitions.
pub type Batches<'a> = (TopicName, Vec<(i32, &'a [u8])>);

/// Whether this version of Produce allows zstd batches.
pub fn has_zstd(version: i16) -> bool {
    version >= ZSTD_SINCE
}

/// The topics of a request, as it names them.
pub fn topics<'a>(request: &ProduceRequest<'a>, version: i16) -> Vec<Batches<'a>> {
    let topics = request.topic_data.iter().map(|topic| {
        let name = if version >= BY_ID_SINCE {
            TopicName::Id(topic.topic_id)
        } else {
            TopicName::Name(topic.name.into())
        };
        let batches = topic.partition_data.iter();
        let batches = batches.map(|each| (each.index, each.records.bytes()));
        (name, batches.collect())
    });
    topics.collect()
}

/// Names each topic and partition once: if a partition repeats, the last batch wins, as on Apache Kafka.
pub fn each_once(topics: Vec<Batches<'_>>) -> Vec<Batches<'_>> {
    if topics.len() == 1 && topics[0].1.len() == 1 {
        return topics;
    }
    let mut found: Vec<Batches<'_>> = Vec::with_capacity(topics.len());
    let mut places: HashMap<TopicName, (usize, HashMap<i32, usize>)> = HashMap::new();
    for (name, batches) in topics {
        let (topic, indexes) = places.entry(name).or_insert_with_key(|name| {
            found.push((name.clone(), Vec::with_capacity(batches.len())));
            (found.len() - 1, HashMap::with_capacity(batches.len()))
        });
        let kept = &mut found[*topic].1;
        for (index, records) in batches {
            match indexes.entry(index) {
                Entry::Occupied(place) => kept[*place.get()].1 = records,
                Entry::Vacant(place) => {
                    place.insert(kept.len());
                    kept.push((index, records));
                }
            }
        }
    }
    found
}

/// Whether any batch of a request is transactional.
pub fn any_transactional(topics: &[Batches<'_>]) -> bool {
    let mut batches = topics.iter().flat_map(|(_, batches)| batches);
    batches.any(|(_, records)| is_transactional(records))
}

/// Whether a batch is transactional; false if it is too short for a header or has an unknown format.
pub fn is_transactional(records: &[u8]) -> bool {
    attributes(records)
        .is_some_and(|attributes| attributes & TRANSACTIONAL != 0 && records[MAGIC_AT] == MAGIC)
}

/// What holds for every batch of a request.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The transactional id, if any.
    pub transactional_id: Option<&'a str>,
    /// The requested acknowledgements: -1, 0 or 1.
    pub acks: i64,
    /// Whether the version of the request has zstd.
    pub zstd: bool,
    /// False if no batch is appended, because one belongs to a transaction and the client may not use its id.
    pub may_begin: bool,
    /// The time of the append.
    pub now_ms: i64,
}

impl Terms<'_> {
    /// Check a batch as far as its header says; return whether it belongs to a transaction.
    pub fn admit(&self, records: &[u8]) -> Result<bool, Refused> {
        sharecore_store::check_request(records, self.zstd).map_err(Refused::ByTheStore)?;
        if !(-1..=1).contains(&self.acks) {
            return Err(Refused::Acks);
        }
        Ok(is_transactional(records))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use sharecore_records::layout::ATTRIBUTES_AT;
    use sharecore_records::{Producer, headed_batch, local_batch};
    use sharecore_wire::typed::Records;
    use sharecore_wire::typed::produce::{PartitionProduceData, TopicProduceData};

    use super::*;

    #[test]
    fn a_version_names_topics_one_way() {
        let topic = TopicProduceData {
            topic_id: [7; 16],
            name: "jobs",
            partition_data: vec![
                PartitionProduceData {
                    index: 3,
                    records: Records::Here(b"batch"),
                },
                PartitionProduceData::default(),
            ],
        };
        let request = ProduceRequest {
            topic_data: vec![topic],
            ..ProduceRequest::default()
        };
        let batches = vec![(3, &b"batch"[..]), (0, &[][..])];
        let by_name = (TopicName::Name("jobs".into()), batches.clone());
        assert_eq!(topics(&request, 12), [by_name]);
        assert_eq!(topics(&request, 13), [(TopicName::Id([7; 16]), batches)]);
    }

    #[test]
    fn zstd_came_with_a_version() {
        assert!(!has_zstd(6) && has_zstd(7));
    }

    #[test]
    fn a_transactions_batch_says_so_in_a_header_of_this_format() {
        let mut batch = vec![0; 61];
        batch[MAGIC_AT] = MAGIC;
        assert!(!is_transactional(&batch));
        batch[ATTRIBUTES_AT + 1] = TRANSACTIONAL as u8;
        assert!(is_transactional(&batch));
        assert!(!is_transactional(&batch[..=ATTRIBUTES_AT]));
        batch[MAGIC_AT] = MAGIC - 1;
        assert!(!is_transactional(&batch));
        assert!(!is_transactional(&[]));
    }

    #[test]
    fn a_damaged_batch_is_refused_before_the_acknowledgements() {
        let terms = |acks| Terms {
            transactional_id: None,
            acks,
            zstd: true,
            may_begin: true,
            now_ms: 0,
        };
        let records = [((None, Some(&b"value"[..])), &[][..])];
        let batch = headed_batch(&records, 1);
        for acks in -1..=1 {
            assert!(matches!(terms(acks).admit(&batch), Ok(false)));
            assert!(matches!(
                terms(acks).admit(&batch[..30]),
                Err(Refused::ByTheStore(_))
            ));
        }
        for acks in [-2, 2] {
            assert!(matches!(terms(acks).admit(&batch), Err(Refused::Acks)));
            assert!(matches!(
                terms(acks).admit(&[]),
                Err(Refused::ByTheStore(_))
            ));
        }
        let producer = Producer::in_transaction((7, 0));
        let (batch, _) = local_batch(&[(None, None)], producer, 1);
        assert!(matches!(terms(-1).admit(&batch), Ok(true)));
    }

    proptest! {
        #[test]
        fn the_last_batch_of_a_partition_counts_at_its_first_place(
            named in vec((0_u8..3, vec((0_i32..4, any::<u8>()), 0..5)), 0..5),
        ) {
            let bytes: Vec<Vec<[u8; 1]>> = named
                .iter()
                .map(|(_, batches)| batches.iter().map(|(_, byte)| [*byte]).collect())
                .collect();
            let asked: Vec<Batches<'_>> = named
                .iter()
                .zip(&bytes)
                .map(|((topic, batches), bytes)| {
                    let batches = batches.iter().zip(bytes);
                    let batches = batches.map(|((index, _), records)| (*index, &records[..]));
                    (TopicName::Id([*topic; 16]), batches.collect())
                })
                .collect();
            let mut expected: Vec<Batches<'_>> = Vec::new();
            for (name, batches) in &asked {
                if !expected.iter().any(|(known, _)| known == name) {
                    expected.push((name.clone(), Vec::new()));
                }
                let known = expected.iter_mut().find(|(known, _)| known == name);
                let kept = &mut known.expect("a topic that is there").1;
                for (index, records) in batches {
                    match kept.iter_mut().find(|(known, _)| known == index) {
                        Some(known) => known.1 = records,
                        None => kept.push((*index, records)),
                    }
                }
            }
            prop_assert_eq!(each_once(asked), expected);
        }
    }
}
