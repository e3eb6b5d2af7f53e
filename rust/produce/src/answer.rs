//! The response of a produce request: for each partition, the offset of its batch or why it was not appended.

use sharecore_store::{RecordFault, Refusal, RefusedRecords};
use sharecore_wire::typed::produce::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};

use crate::planted::{Bug, is_planted};
use crate::request::TopicName;

const CORRUPT_MESSAGE: i16 = 2;
const MESSAGE_TOO_LARGE: i16 = 10;
const INVALID_REQUIRED_ACKS: i16 = 21;
const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i16 = 53;
const KAFKA_STORAGE_ERROR: i16 = 56;
/// Errors that Kafka returns without the log start offset.
const WITHOUT_START: [i16; 3] = [MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR];
const OUT_OF_RANGE: &str = "the time of the record is out of the range that the topic allows";
/// How many records an error message lists.
const NAMED: usize = 3;

/// Why nothing was appended to a partition.
#[derive(Debug)]
pub enum Refused {
    /// The broker refuses it.
    ByTheBroker {
        /// The Kafka error code.
        code: i16,
        /// The message, if any.
        message: Option<String>,
    },
    /// The store, or the log, refuses it.
    ByTheStore(Refusal),
    /// The request has an invalid `acks`.
    Acks,
    /// A batch of the request is transactional, and the client may not use its transactional ID.
    TransactionalId,
}

/// The log that refused a batch.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its partition.
    pub index: i32,
    /// Its start offset.
    pub start_offset: i64,
}

/// The position of an appended batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The offset of its first record.
    pub base_offset: i64,
    /// The append time if the topic uses `LogAppendTime`, else -1.
    pub append_time_ms: i64,
    /// The log start offset.
    pub log_start_offset: i64,
}

/// The result for one partition.
#[derive(Debug)]
struct Outcome {
    index: i32,
    error_code: i16,
    base_offset: i64,
    append_time_ms: i64,
    log_start_offset: i64,
    message: Option<String>,
    /// Refused records, with the reason for each.
    refused: Vec<(i32, String)>,
}

/// A response under construction: until its partitions are complete and the last append has ended.
#[derive(Debug, Default)]
pub struct Answer {
    /// The throttle time of the client.
    pub throttle_time_ms: i64,
    /// Each with its number of partitions.
    topics: Vec<(TopicName, usize)>,
    outcomes: Vec<Outcome>,
    /// Appends in progress.
    left: usize,
}

impl Answer {
    /// Adds the next partition; returns its index.
    pub fn name(&mut self, index: i32) -> usize {
        self.outcomes.push(Outcome {
            index,
            error_code: 0,
            base_offset: -1,
            append_time_ms: -1,
            log_start_offset: -1,
            message: None,
            refused: Vec::new(),
        });
        self.outcomes.len() - 1
    }

    /// Groups the last `partitions` added under a topic.
    pub fn end_topic(&mut self, name: TopicName, partitions: usize) {
        self.topics.push((name, partitions));
        debug_assert!(
            self.topics.iter().map(|(_, count)| count).sum::<usize>() <= self.outcomes.len(),
            "a topic without partitions"
        );
    }

    /// The batch at an index was appended; it may not be durable until [`end`](Self::end).
    pub fn append(&mut self, place: usize, appended: Appended) {
        self.left += 1;
        let outcome = &mut self.outcomes[place];
        debug_assert!(outcome.error_code == 0 && outcome.base_offset < 0);
        outcome.base_offset = appended.base_offset;
        outcome.append_time_ms = appended.append_time_ms;
        outcome.log_start_offset = appended.log_start_offset;
    }

    /// Announces checks of this many batches, each of which [`end`](Self::end)s.
    pub fn check_first(&mut self, batches: usize) {
        self.left += batches;
    }

    /// An append or a check has ended; returns true if it was the last one pending.
    pub fn end(&mut self, place: usize, error_code: i16) -> bool {
        debug_assert!(self.left > 0, "an append ends that has not begun");
        if error_code != 0 && !is_planted(Bug::FailedIsWritten) {
            self.outcomes[place].error_code = error_code;
            self.outcomes[place].base_offset = -1;
        }
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Whether nothing is pending.
    pub fn is_known(&self) -> bool {
        self.left == 0
    }

    /// Records a refusal for the partition at `place`; `log`: the log that refused.
    pub fn refuse(&mut self, place: usize, refused: Refused, log: Option<Place<'_>>) {
        let outcome = &mut self.outcomes[place];
        let (code, message) = match refused {
            Refused::Acks => (INVALID_REQUIRED_ACKS, None),
            Refused::TransactionalId => (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None),
            Refused::ByTheBroker { code, message } => (code, message),
            Refused::ByTheStore(refusal) => {
                let code = refusal.code();
                let message = match (&refusal, log) {
                    (Refusal::Records(refused), Some(log)) => {
                        outcome.refused = reasons(refused, log);
                        whole(&refusal, refused, &outcome.refused)
                    }
                    _ => refusal.to_string(),
                };
                if let Some(log) = log.filter(|_| !WITHOUT_START.contains(&code)) {
                    outcome.log_start_offset = log.start_offset;
                }
                (code, Some(message))
            }
        };
        outcome.error_code = code;
        outcome.message = message.filter(|text| !text.is_empty());
    }

    /// The error of the first batch not appended: if the client wants no response, its connection is closed instead, as
    /// on Kafka.
    pub fn failure(&self) -> Option<i16> {
        let mut codes = self.outcomes.iter().map(|each| each.error_code);
        codes.find(|code| *code != 0)
    }

    /// The response message.
    pub fn message(&self) -> ProduceResponse<'_> {
        let mut rest = &self.outcomes[..];
        let topics = self.topics.iter().map(|(name, count)| {
            let (here, others) = rest.split_at(*count);
            rest = others;
            let (topic_id, name) = match name {
                TopicName::Id(id) => (*id, ""),
                TopicName::Name(name) => ([0; 16], &**name),
            };
            TopicProduceResponse {
                topic_id,
                name,
                partition_responses: here.iter().map(Outcome::message).collect(),
            }
        });
        ProduceResponse {
            responses: topics.collect(),
            throttle_time_ms: self.throttle_time_ms as i32,
            ..ProduceResponse::default()
        }
    }
}

impl Outcome {
    fn message(&self) -> PartitionProduceResponse<'_> {
        let refused = self.refused.iter();
        let refused = refused.map(|(batch_index, reason)| BatchIndexAndErrorMessage {
            batch_index: *batch_index,
            batch_index_error_message: Some(reason),
        });
        PartitionProduceResponse {
            index: self.index,
            error_code: self.error_code,
            base_offset: self.base_offset,
            log_append_time_ms: self.append_time_ms,
            log_start_offset: self.log_start_offset,
            record_errors: refused.collect(),
            error_message: self.message.as_deref(),
            ..PartitionProduceResponse::default()
        }
    }
}

/// The refused records to list, with the reason for each.
fn reasons(refused: &RefusedRecords, log: Place<'_>) -> Vec<(i32, String)> {
    let Place { topic, index, .. } = log;
    let lines = refused.first.iter().map(|(record, fault)| {
        let reason = match fault {
            RecordFault::Timestamp => OUT_OF_RANGE.to_owned(),
            RecordFault::NoKey => format!(
                "Compacted topic cannot accept message without key in topic partition {topic}-{index}"
            ),
        };
        (*record, reason)
    });
    lines.collect()
}

/// The message for the whole batch.
fn whole(refusal: &Refusal, refused: &RefusedRecords, records: &[(i32, String)]) -> String {
    if refused.any_timestamp {
        return refusal.to_string();
    }
    let named = records
        .iter()
        .take(NAMED)
        .map(|(index, reason)| format!("RecordError(batchIndex={index}, message='{reason}')"));
    format!(
        "One or more records have been rejected due to {} record errors in total, and only showing the first three \
         errors at most: [{}]",
        refused.count,
        named.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: Place<'static> = Place {
        topic: "jobs",
        index: 4,
        start_offset: 20,
    };
    const APPENDED: Appended = Appended {
        base_offset: 30,
        append_time_ms: -1,
        log_start_offset: 20,
    };

    fn fields(refused: Refused, log: Option<Place<'_>>) -> (i16, Option<String>, i64, Vec<String>) {
        let mut answer = Answer::default();
        let place = answer.name(4);
        answer.refuse(place, refused, log);
        answer.end_topic(TopicName::Name("jobs".into()), 1);
        assert!(answer.is_known());
        assert_eq!(answer.message().responses[0].name, "jobs");
        let partition = answer.message().responses[0].partition_responses[0].clone();
        assert_eq!((partition.index, partition.base_offset), (4, -1));
        assert_eq!(answer.failure(), Some(partition.error_code));
        let reasons = partition.record_errors.iter().map(|each| {
            let reason = each.batch_index_error_message.expect("a reason");
            format!("{} {reason}", each.batch_index)
        });
        (
            partition.error_code,
            partition.error_message.map(str::to_owned),
            partition.log_start_offset,
            reasons.collect(),
        )
    }

    #[test]
    fn refusals_have_their_error_and_their_text() {
        let by_the_broker = |message: &str| Refused::ByTheBroker {
            code: 17,
            message: Some(message.to_owned()),
        };
        assert_eq!(fields(Refused::Acks, None), (21, None, -1, vec![]));
        assert_eq!(
            fields(Refused::TransactionalId, None),
            (53, None, -1, vec![])
        );
        let internal = (17, Some("internal".to_owned()), -1, vec![]);
        assert_eq!(fields(by_the_broker("internal"), Some(LOG)), internal);
        assert_eq!(fields(by_the_broker(""), None), (17, None, -1, vec![]));
    }

    #[test]
    fn some_refusals_of_the_store_say_where_the_log_starts() {
        let sequence = || Refused::ByTheStore(Refusal::OutOfOrderSequence("5 follows 3".into()));
        let text = Some("5 follows 3".to_owned());
        assert_eq!(
            fields(sequence(), Some(LOG)),
            (45, text.clone(), 20, vec![])
        );
        assert_eq!(fields(sequence(), None), (45, text, -1, vec![]));
        for (refusal, code) in [
            (Refusal::CorruptBatch("torn".into()), CORRUPT_MESSAGE),
            (Refusal::Busy, KAFKA_STORAGE_ERROR),
        ] {
            let (found, text, start, _) = fields(Refused::ByTheStore(refusal), Some(LOG));
            assert_eq!((found, start), (code, -1));
            assert!(text.is_some());
        }
    }

    #[test]
    fn records_without_a_key_are_named_and_the_text_shows_three() {
        let faults = (0..5).map(|index| (index, RecordFault::NoKey));
        let refused = RefusedRecords {
            count: 9,
            first: faults.collect(),
            any_timestamp: false,
        };
        let (code, text, start, reasons) =
            fields(Refused::ByTheStore(Refusal::Records(refused)), Some(LOG));
        let reason = "Compacted topic cannot accept message without key in topic partition jobs-4";
        assert_eq!((code, start, reasons.len()), (87, 20, 5));
        assert_eq!(reasons[4], format!("4 {reason}"));
        let text = text.expect("a text");
        assert!(text.contains("due to 9 record errors in total"), "{text}");
        assert!(text.contains(&format!("RecordError(batchIndex=2, message='{reason}')]")));
        assert!(!text.contains("batchIndex=3"));
    }

    #[test]
    fn a_time_out_of_range_is_an_error_of_the_batch() {
        let refused = RefusedRecords {
            count: 1,
            first: vec![(2, RecordFault::Timestamp)],
            any_timestamp: true,
        };
        let (code, text, _, reasons) =
            fields(Refused::ByTheStore(Refusal::Records(refused)), Some(LOG));
        assert_eq!((code, reasons), (32, vec![format!("2 {OUT_OF_RANGE}")]));
        assert!(!text.expect("a text").contains("RecordError"));
    }

    #[test]
    fn an_answer_is_known_when_the_last_append_has_ended() {
        let mut answer = Answer::default();
        let places = [answer.name(0), answer.name(1), answer.name(2)];
        answer.end_topic(TopicName::Id([9; 16]), 2);
        answer.end_topic(TopicName::Id([8; 16]), 1);
        assert!(answer.is_known());
        answer.append(places[0], APPENDED);
        answer.append(places[1], APPENDED);
        answer.check_first(1);
        assert!(!answer.end(places[0], 0));
        assert!(!answer.end(places[1], KAFKA_STORAGE_ERROR));
        // The check was the last of its batch, whose append is pending
        answer.append(places[2], APPENDED);
        assert!(!answer.end(places[2], 0));
        assert!(!answer.is_known());
        assert!(answer.end(places[2], 0));
        assert_eq!(answer.failure(), Some(KAFKA_STORAGE_ERROR));
        let message = answer.message();
        let outcomes = message.responses.iter().map(|topic| {
            let offsets = topic.partition_responses.iter();
            let offsets: Vec<_> = offsets.map(|each| (each.index, each.base_offset)).collect();
            (topic.topic_id[0], offsets)
        });
        let outcomes: Vec<_> = outcomes.collect();
        assert_eq!(outcomes, [(9, vec![(0, 30), (1, -1)]), (8, vec![(2, 30)])]);
    }
}
