//! Building the responses to `ShareFetch` and `ShareAcknowledge`.

use std::collections::hash_map::Entry;

use sharecore_wire::typed::Records;
use sharecore_wire::typed::share_acknowledge::{
    self as acknowledge, ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse,
};
use sharecore_wire::typed::share_fetch::{
    self as fetch, AcquiredRecords, LeaderIdAndEpoch, NodeEndpoint, ShareFetchResponse,
    ShareFetchableTopicResponse,
};

use crate::PartitionId;
use crate::maps::IdMap;
use crate::planted::{Bug, is_planted};

const NOT_LEADER_OR_FOLLOWER: i16 = 6;
const REQUEST_TIMED_OUT: i16 = 7;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;
const KAFKA_STORAGE_ERROR: i16 = 56;
const FENCED_LEADER_EPOCH: i16 = 74;

/// Whether an error means that acknowledgements were not persisted in time. If the broker no longer leads the partition,
/// the client must also learn it, or it retries here until its own timeout.
pub fn is_unwritten(code: i16) -> bool {
    matches!(
        code,
        COORDINATOR_NOT_AVAILABLE | KAFKA_STORAGE_ERROR | REQUEST_TIMED_OUT
    )
}

/// Whether an error redirects the client, so that the response has to name the leader.
pub fn redirects(code: i16) -> bool {
    matches!(code, NOT_LEADER_OR_FOLLOWER | FENCED_LEADER_EPOCH)
}

/// An error code and message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Kafka's error code; 0: none.
    pub code: i16,
    /// The message, if any.
    pub text: Option<String>,
}

/// A broker that clients are redirected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: i32,
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: i32,
    /// Its rack.
    pub rack: Option<String>,
}

/// The response for one partition.
#[derive(Debug)]
struct PartitionAnswer<N, R> {
    name: N,
    id: PartitionId,
    /// Id and epoch of the current leader in a redirect; otherwise zeros, as in Apache Kafka.
    leader: (i32, i32),
    error: Refusal,
    acknowledge_error: Refusal,
    records: Option<R>,
    acquired: Vec<AcquiredRecords>,
}

/// A response under construction; partitions appear in the order in which they were first added.
///
/// `N`: the caller's key of a partition; `R`: its records.
#[derive(Debug)]
pub struct Answer<N, R> {
    /// The lock duration.
    pub lock_ms: i64,
    /// The throttle time.
    pub throttle_time_ms: i64,
    partitions: Vec<PartitionAnswer<N, R>>,
    places: IdMap<PartitionId, usize>,
    /// Partitions by topic.
    topics: Vec<([u8; 16], Vec<usize>)>,
    by_topic: IdMap<[u8; 16], usize>,
    served: Vec<usize>,
    failed: Vec<usize>,
    /// Leaders on other brokers, for redirects.
    redirected: Vec<i32>,
    endpoints: Vec<Node>,
}

impl<N, R> Answer<N, R> {
    /// Create an empty response.
    pub fn new(lock_ms: i64) -> Self {
        Self {
            lock_ms,
            throttle_time_ms: 0,
            partitions: Vec::new(),
            places: IdMap::default(),
            topics: Vec::new(),
            by_topic: IdMap::default(),
            served: Vec::new(),
            failed: Vec::new(),
            redirected: Vec::new(),
            endpoints: Vec::new(),
        }
    }

    /// Add a partition, which fixes its position; `name` is called if it is new.
    pub fn name(&mut self, id: PartitionId, name: impl FnOnce() -> N) -> usize {
        let place = self.partitions.len();
        match self.places.entry(id) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(new) => new.insert(place),
        };
        self.partitions.push(PartitionAnswer {
            name: name(),
            id,
            leader: (0, 0),
            error: Refusal::default(),
            acknowledge_error: Refusal::default(),
            records: None,
            acquired: Vec::new(),
        });
        let at = *self.by_topic.entry(id.0).or_insert(self.topics.len());
        if at == self.topics.len() {
            self.topics.push((id.0, Vec::new()));
        }
        debug_assert_eq!(self.topics[at].0, id.0, "the place of another topic");
        self.topics[at].1.push(place);
        debug_assert_eq!(
            self.partitions.len(),
            self.places.len(),
            "each is named once"
        );
        place
    }

    /// Set a partition's error; `beside`: set the acknowledge error, which is a separate field in a fetch response.
    /// `leader`: id and epoch of the leader in a redirect.
    pub fn refuse(
        &mut self,
        place: usize,
        refusal: Refusal,
        beside: bool,
        leader: Option<(i32, i32)>,
    ) {
        debug_assert_eq!(redirects(refusal.code), leader.is_some());
        let partition = &mut self.partitions[place];
        if beside && is_planted(Bug::AcknowledgeErrorHidden) {
            return;
        }
        if beside {
            partition.acknowledge_error = refusal;
        } else {
            partition.error = refusal;
        }
        if let Some(leader) = leader {
            partition.leader = leader;
            self.redirected.push(leader.0);
        }
    }

    /// Set the acquired records of a partition.
    pub fn bring(&mut self, place: usize, records: R, mut acquired: Vec<AcquiredRecords>) {
        debug_assert!(
            acquired
                .windows(2)
                .all(|pair| pair[0].last_offset < pair[1].first_offset)
        );
        debug_assert!(
            self.partitions[place].records.is_none(),
            "what it brought before would be lost, and stay leased"
        );
        if !acquired.is_empty() {
            self.served.push(place);
        }
        if is_planted(Bug::FirstCountForAll)
            && let Some(first) = acquired.first().map(|first| first.delivery_count)
        {
            for each in &mut acquired {
                each.delivery_count = first;
            }
        }
        self.partitions[place].records = Some(records);
        self.partitions[place].acquired = acquired;
    }

    /// Set a partition's fetch error.
    pub fn fail(&mut self, place: usize) {
        debug_assert!(place < self.partitions.len(), "it is not named");
        self.failed.push(place);
    }

    /// Whether the response redirects the client.
    pub fn redirects(&self) -> bool {
        !self.redirected.is_empty()
    }

    /// Add the endpoints of redirect targets (KIP-951).
    pub fn send_to(&mut self, nodes: impl IntoIterator<Item = Node>) {
        let named = nodes.into_iter();
        let named = named.filter(|node| self.redirected.contains(&node.id));
        self.endpoints = named.collect();
        debug_assert!(
            self.redirects() || self.endpoints.is_empty(),
            "nobody is sent there"
        );
    }

    /// Return its partitions.
    pub fn ids(&self) -> impl Iterator<Item = PartitionId> {
        self.partitions.iter().map(|partition| partition.id)
    }

    /// Return partitions with a fetch error.
    pub fn failed(&self) -> impl Iterator<Item = (PartitionId, &N)> {
        self.at(&self.failed)
    }

    /// Return partitions with records.
    pub fn served(&self) -> impl Iterator<Item = (PartitionId, &N)> {
        self.at(&self.served)
    }

    /// Return the callers' keys of its partitions.
    pub fn names(&self) -> impl Iterator<Item = &N> {
        self.partitions.iter().map(|partition| &partition.name)
    }

    /// Return the records at a position.
    pub fn records(&self, place: usize) -> Option<&R> {
        self.partitions.get(place)?.records.as_ref()
    }

    fn at(&self, places: &[usize]) -> impl Iterator<Item = (PartitionId, &N)> {
        places.iter().map(|place| {
            let partition = &self.partitions[*place];
            (partition.id, &partition.name)
        })
    }

    /// Check that every partition belongs to exactly one topic.
    fn is_whole(&self) -> bool {
        let count: usize = self.topics.iter().map(|(_, places)| places.len()).sum();
        count == self.partitions.len()
    }

    /// Build the `ShareFetch` message; records are referenced by position, `size` returns their bytes.
    pub fn of_fetch(&self, size: impl Fn(&R) -> usize) -> ShareFetchResponse<'_> {
        debug_assert!(self.is_whole(), "a partition is in no topic, or in two");
        let partition = |place: &usize| {
            let partition = &self.partitions[*place];
            fetch::PartitionData {
                partition_index: partition.id.1,
                error_code: partition.error.code,
                error_message: partition.error.text.as_deref(),
                acknowledge_error_code: partition.acknowledge_error.code,
                acknowledge_error_message: partition.acknowledge_error.text.as_deref(),
                current_leader: partition.leader(),
                records: match &partition.records {
                    Some(records) => Records::Far {
                        len: size(records),
                        id: *place,
                    },
                    None => Records::Here(&[]),
                },
                acquired_records: partition.acquired.clone(),
            }
        };
        let topics = self.topics.iter();
        let topics = topics.map(|(id, places)| ShareFetchableTopicResponse {
            topic_id: *id,
            partitions: places.iter().map(partition).collect(),
        });
        ShareFetchResponse {
            throttle_time_ms: self.throttle_time_ms as i32,
            acquisition_lock_timeout_ms: self.lock_ms as i32,
            responses: topics.collect(),
            node_endpoints: self.node_endpoints(),
            ..ShareFetchResponse::default()
        }
    }

    /// Build the `ShareAcknowledge` message.
    pub fn of_acknowledge(&self) -> ShareAcknowledgeResponse<'_> {
        debug_assert!(self.is_whole(), "a partition is in no topic, or in two");
        debug_assert!(self.served.is_empty(), "it has no place for records");
        let partition = |place: &usize| {
            let partition = &self.partitions[*place];
            acknowledge::PartitionData {
                partition_index: partition.id.1,
                error_code: partition.error.code,
                error_message: partition.error.text.as_deref(),
                current_leader: partition.leader(),
            }
        };
        let topics = self.topics.iter();
        let topics = topics.map(|(id, places)| ShareAcknowledgeTopicResponse {
            topic_id: *id,
            partitions: places.iter().map(partition).collect(),
        });
        ShareAcknowledgeResponse {
            throttle_time_ms: self.throttle_time_ms as i32,
            acquisition_lock_timeout_ms: self.lock_ms as i32,
            responses: topics.collect(),
            node_endpoints: self.node_endpoints(),
            ..ShareAcknowledgeResponse::default()
        }
    }

    fn node_endpoints(&self) -> Vec<NodeEndpoint<'_>> {
        let nodes = self.endpoints.iter();
        let nodes = nodes.map(|node| NodeEndpoint {
            node_id: node.id,
            host: &node.host,
            port: node.port,
            rack: node.rack.as_deref(),
        });
        nodes.collect()
    }
}

impl<N, R> PartitionAnswer<N, R> {
    fn leader(&self) -> LeaderIdAndEpoch {
        let (leader_id, leader_epoch) = self.leader;
        LeaderIdAndEpoch {
            leader_id,
            leader_epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(topic: u8, index: i32) -> PartitionId {
        ([topic; 16], index)
    }

    fn answer() -> Answer<&'static str, &'static [u8]> {
        Answer::new(30_000)
    }

    fn refusal(code: i16, text: &str) -> Refusal {
        Refusal {
            code,
            text: (!text.is_empty()).then(|| text.to_owned()),
        }
    }

    fn acquired(first_offset: i64, last_offset: i64) -> AcquiredRecords {
        AcquiredRecords {
            first_offset,
            last_offset,
            delivery_count: 1,
        }
    }

    #[test]
    fn partitions_come_by_topic_in_the_order_in_which_they_are_named() {
        let mut answer = answer();
        for (topic, index) in [(2, 3), (1, 0), (2, 1), (2, 3)] {
            answer.name(id(topic, index), || "a partition");
        }
        assert_eq!(answer.names().count(), 3);
        let response = answer.of_fetch(|records| records.len());
        let topics: Vec<_> = response
            .responses
            .iter()
            .map(|topic| {
                let indexes = topic.partitions.iter();
                let indexes: Vec<_> = indexes.map(|each| each.partition_index).collect();
                (topic.topic_id[0], indexes)
            })
            .collect();
        assert_eq!(topics, [(2, vec![3, 1]), (1, vec![0])]);
        assert_eq!(response.acquisition_lock_timeout_ms, 30_000);
        assert!(response.node_endpoints.is_empty());
    }

    #[test]
    fn a_fetch_returns_records_beside_results_of_acknowledgements() {
        let mut answer = answer();
        let place = answer.name(id(1, 0), || "first");
        answer.bring(place, b"batch", vec![acquired(5, 6), acquired(7, 7)]);
        answer.refuse(place, refusal(121, "gone"), true, None);
        let other = answer.name(id(1, 1), || "second");
        answer.bring(other, b"", Vec::new());
        answer.refuse(other, refusal(29, ""), false, None);
        answer.fail(other);
        let response = answer.of_fetch(|records| records.len());
        let [first, second] = &response.responses[0].partitions[..] else {
            panic!("two partitions");
        };
        assert_eq!((first.error_code, first.acknowledge_error_code), (0, 121));
        assert_eq!(first.acknowledge_error_message, Some("gone"));
        assert_eq!(first.records, Records::Far { len: 5, id: place });
        assert_eq!(first.acquired_records.len(), 2);
        assert_eq!((second.error_code, second.error_message), (29, None));
        assert_eq!(answer.records(place), Some(&&b"batch"[..]));
        let served: Vec<_> = answer.served().collect();
        let failed: Vec<_> = answer.failed().collect();
        assert_eq!(
            (served, failed),
            (vec![(id(1, 0), &"first")], vec![(id(1, 1), &"second")])
        );
    }

    #[test]
    fn who_is_sent_away_gets_the_leader() {
        let mut answer = answer();
        let place = answer.name(id(1, 0), || "moved");
        assert!(!answer.redirects());
        answer.refuse(
            place,
            refusal(NOT_LEADER_OR_FOLLOWER, ""),
            false,
            Some((2, 10)),
        );
        assert!(answer.redirects());
        let node = |id, host: &str| Node {
            id,
            host: host.to_owned(),
            port: 9092,
            rack: None,
        };
        answer.send_to([node(1, "one"), node(2, "two"), node(3, "three")]);
        let response = answer.of_acknowledge();
        let leader = response.responses[0].partitions[0].current_leader.clone();
        assert_eq!((leader.leader_id, leader.leader_epoch), (2, 10));
        let hosts: Vec<_> = response
            .node_endpoints
            .iter()
            .map(|node| node.host)
            .collect();
        assert_eq!(hosts, ["two"]);
    }

    #[test]
    fn errors_of_writes_and_of_leaders_have_fields_of_their_own() {
        let codes = -1..130;
        let unwritten: Vec<_> = codes.clone().filter(|code| is_unwritten(*code)).collect();
        let moved: Vec<_> = codes.filter(|code| redirects(*code)).collect();
        assert_eq!((unwritten, moved), (vec![7, 15, 56], vec![6, 74]));
    }
}
