//! A large Produce request, taken batch by batch.

use std::ops::Range;

use sharecore_wire::typed::Message;
use sharecore_wire::typed::produce::ProduceRequest;
use sharecore_wire::{Input, Malformed};

use crate::request::{Batches, TopicName, any_transactional, each_once, topics};

/// Batches per turn of the event loop.
const BATCHES_A_TURN: usize = 256;

/// A topic, and the positions of its batches in the frame.
#[derive(Debug)]
struct Topic {
    name: TopicName,
    batches: Vec<(i32, Range<usize>)>,
}

/// A request without its frame, and how much of it is done.
#[derive(Debug)]
pub struct Contents {
    /// The transactional id, if any.
    pub transactional_id: Option<String>,
    /// The requested acknowledgements.
    pub acks: i64,
    /// The version of the request.
    pub version: i16,
    /// Whether a batch belongs to a transaction.
    pub any_transactional: bool,
    topics: Vec<Topic>,
    /// Completed topics, and batches of the next one that were taken.
    at: (usize, usize),
    taken: usize,
}

/// The next part of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// A batch.
    Batch {
        /// Its partition.
        index: i32,
        /// Its position in the frame.
        records: Range<usize>,
        /// Whether it is the first of a turn of the event loop.
        begins_turn: bool,
    },
    /// The end of a topic with so many batches.
    TopicEnd(usize),
}

impl Contents {
    /// `topics`: of the request, whose bytes are in `frame`.
    pub fn of(
        request: &ProduceRequest<'_>,
        topics: Vec<Batches<'_>>,
        version: i16,
        frame: &[u8],
    ) -> Self {
        let any_transactional = any_transactional(&topics);
        let begin = frame.as_ptr() as usize;
        let topics = each_once(topics).into_iter().map(|(name, batches)| {
            let batches = batches.into_iter().map(|(index, records)| {
                let at = if records.is_empty() {
                    0
                } else {
                    records.as_ptr() as usize - begin
                };
                debug_assert!(at + records.len() <= frame.len(), "bytes of another frame");
                (index, at..at + records.len())
            });
            let batches = batches.collect();
            Topic { name, batches }
        });
        Self {
            transactional_id: request.transactional_id.map(str::to_owned),
            acks: request.acks.into(),
            version,
            any_transactional,
            topics: topics.collect(),
            at: (0, 0),
            taken: 0,
        }
    }

    /// Read the request at a position of a frame.
    pub fn read(version: i16, frame: &[u8], at: usize) -> Result<Self, Malformed> {
        let request = ProduceRequest::decode(version, &mut Input::new(frame, at))?;
        let topics = topics(&request, version);
        Ok(Self::of(&request, topics, version, frame))
    }

    /// Number of topics.
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// Return the name of a topic by its position.
    pub fn topic(&self, place: usize) -> Option<&TopicName> {
        self.topics.get(place).map(|topic| &topic.name)
    }

    /// Return the next part and its topic.
    pub fn next_part(&mut self) -> Option<(&TopicName, Part)> {
        let topic = self.topics.get_mut(self.at.0)?;
        let Some((index, records)) = topic.batches.get(self.at.1).cloned() else {
            let count = topic.batches.len();
            topic.batches = Vec::new();
            self.at = (self.at.0 + 1, 0);
            return Some((&topic.name, Part::TopicEnd(count)));
        };
        let begins_turn = self.taken.is_multiple_of(BATCHES_A_TURN);
        self.at.1 += 1;
        self.taken += 1;
        let part = Part::Batch {
            index,
            records,
            begins_turn,
        };
        Some((&topic.name, part))
    }
}

#[cfg(test)]
mod tests {
    use sharecore_wire::typed::Records;
    use sharecore_wire::typed::produce::{PartitionProduceData, TopicProduceData};

    use super::*;

    /// A topic with its batches.
    type Named<'a> = (&'static str, &'a [(i32, &'static [u8])]);

    /// A request of version 12 in a frame, after four bytes.
    fn frame(topics: &[Named<'_>]) -> Vec<u8> {
        let topics = topics.iter().map(|(name, batches)| TopicProduceData {
            name,
            partition_data: batches
                .iter()
                .map(|(index, records)| PartitionProduceData {
                    index: *index,
                    records: Records::Here(records),
                })
                .collect(),
            ..TopicProduceData::default()
        });
        let request = ProduceRequest {
            acks: -1,
            transactional_id: Some("writer"),
            topic_data: topics.collect(),
            ..ProduceRequest::default()
        };
        let mut out = vec![0; 4];
        request.encode(12, &mut out).expect("it fits");
        out
    }

    #[test]
    fn parts_come_in_the_order_of_the_request() {
        let frame = frame(&[
            ("a", &[(1, b"one"), (0, b"two"), (1, b"three")]),
            ("b", &[]),
        ]);
        let mut contents = Contents::read(12, &frame, 4).expect("a request");
        assert_eq!(contents.transactional_id.as_deref(), Some("writer"));
        assert_eq!((contents.acks, contents.topic_count()), (-1, 2));
        assert!(!contents.any_transactional);
        let mut parts = Vec::new();
        while let Some((name, part)) = contents.next_part() {
            parts.push(match part {
                Part::Batch { index, records, .. } => {
                    (name.clone(), index, frame[records].to_vec())
                }
                Part::TopicEnd(count) => (name.clone(), -1, vec![count as u8]),
            });
        }
        let name = |name: &str| TopicName::Name(name.into());
        let expected = [
            // the last batch of a partition that repeats
            (name("a"), 1, b"three".to_vec()),
            (name("a"), 0, b"two".to_vec()),
            (name("a"), -1, vec![2]),
            (name("b"), -1, vec![0]),
        ];
        assert_eq!(parts, expected);
        assert_eq!(contents.next_part(), None);
        assert_eq!(contents.topic(1), Some(&name("b")));
        assert_eq!(contents.topic(2), None);
    }

    #[test]
    fn turns_begin_after_so_many_batches() {
        let batches: Vec<_> = (0..600).map(|index| (index, &b"batch"[..])).collect();
        let frame = frame(&[("a", &batches[..300]), ("b", &batches[300..])]);
        let mut contents = Contents::read(12, &frame, 4).expect("a request");
        let mut begun = Vec::new();
        while let Some((_, part)) = contents.next_part() {
            if let Part::Batch {
                index,
                begins_turn: true,
                ..
            } = part
            {
                begun.push(index);
            }
        }
        assert_eq!(begun, [0, 256, 512]);
    }

    #[test]
    fn a_request_that_is_cut_off_is_malformed() {
        let frame = frame(&[("a", &[(0, b"one")])]);
        assert!(Contents::read(12, &frame[..frame.len() - 2], 4).is_err());
    }
}
