//! Compares typed messages with the schema-driven reader and writer.

#[path = "models/agree.rs"]
mod agree;

use agree::KNOWN;
use proptest::collection::vec;
use proptest::prelude::*;
use sharecore_wire::typed::produce::{ProduceRequest, TopicProduceData};
use sharecore_wire::typed::share_fetch::{
    AcquiredRecords, PartitionData, ShareFetchRequest, ShareFetchResponse,
    ShareFetchableTopicResponse,
};
use sharecore_wire::typed::{Message, Records};
use sharecore_wire::{Field, Input, Kind, Layout, Sink, Value, write};

/// Bytes that drive choices; zeros once they have run out.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> i64 {
        let bytes = std::array::from_fn(|_| self.byte());
        match bytes[0] % 4 {
            0 => i64::from(bytes[1]),
            1 => -1,
            _ => i64::from_be_bytes(bytes),
        }
    }

    fn bytes(&mut self) -> &'a [u8] {
        let size = usize::from(self.byte()).min(self.0.len());
        let (taken, rest) = self.0.split_at(size);
        self.0 = rest;
        taken
    }

    fn text(&mut self) -> &'static str {
        let texts = [
            "",
            "a",
            "grüße",
            "a name that is longer than a byte of a compact length can say: \
            it goes on and on, up to more than a hundred and twenty-eight bytes of text",
        ];
        texts[usize::from(self.byte()) % texts.len()]
    }

    fn message(&mut self, layout: &Layout) -> Value<'a> {
        Value::Record(
            layout
                .fields
                .iter()
                .map(|field| self.field(field))
                .collect(),
        )
    }

    fn field(&mut self, field: &Field) -> Value<'a> {
        if field.tag.is_some() && self.byte().is_multiple_of(2) {
            return Value::Absent;
        }
        let nullable = field.nullable || field.kind == Kind::Records;
        if nullable && self.byte().is_multiple_of(4) {
            return Value::Null;
        }
        if field.array && field.kind == Kind::Int8 {
            return Value::Bytes(self.bytes());
        }
        if !field.array {
            return self.single(field);
        }
        let count = self.byte() % 4;
        Value::Array((0..count).map(|_| self.single(field)).collect())
    }

    fn single(&mut self, field: &Field) -> Value<'a> {
        match (field.kind, &field.layout) {
            (Kind::Bool, _) => Value::Int((self.byte() % 2).into()),
            (Kind::Uuid, _) => Value::Uuid([self.byte(); 16]),
            (Kind::String, _) => Value::Text(self.text()),
            (Kind::Records | Kind::Bytes, _) => Value::Bytes(self.bytes()),
            (Kind::Int8, _) => Value::Int((self.number() as i8).into()),
            (Kind::Int16, _) => Value::Int((self.number() as i16).into()),
            (Kind::Int32, _) => Value::Int((self.number() as i32).into()),
            (Kind::Int64, _) => Value::Int(self.number()),
            (Kind::Struct, Some(layout)) => self.message(layout),
            (kind, _) => panic!("a field of kind {kind:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A valid message, a damaged one, a truncated one, then any bytes.
    #[test]
    fn both_readers_and_both_writers_agree(
        choices in vec(any::<u8>(), 0..400),
        damage in vec((any::<usize>(), any::<u8>()), 0..4),
        cut in any::<usize>(),
    ) {
        for known in KNOWN {
            for version in known.versions.clone() {
                let layout = (known.layout)(version).expect("a version that there is");
                let mut bytes = Vec::new();
                write(&layout, &Choices(&choices).message(&layout), &mut bytes).expect("a value that fits");
                prop_assert!((known.agree)(version, &bytes));
                for (at, value) in &damage {
                    let at = at % bytes.len();
                    bytes[at] = *value;
                }
                (known.agree)(version, &bytes);
                bytes.truncate(cut % (bytes.len() + 1));
                (known.agree)(version, &bytes);
                (known.agree)(version, &choices);
            }
        }
    }
}

#[test]
fn there_is_no_schema_of_a_version_that_there_is_not() {
    for known in KNOWN {
        for version in [known.versions.start() - 1, known.versions.end() + 1] {
            assert!((known.layout)(version).is_none());
        }
    }
}

#[test]
fn a_schema_is_like_one_with_the_same_fields() {
    let layout = |change: fn(&mut Field)| {
        let mut layout = ProduceRequest::layout(13).expect("a version that there is");
        let topic = layout.fields[3].layout.as_mut().expect("a struct");
        let partition = topic.fields[1].layout.as_mut().expect("a struct");
        change(&mut partition.fields[1]);
        layout
    };
    let own = layout(|_| {});
    assert!(own.is_like(&layout(|_| {})));
    // Records may be null whatever their schema declares
    assert!(own.is_like(&layout(|records| records.nullable = !records.nullable)));
    assert!(!own.is_like(&layout(|records| records.kind = Kind::Bytes)));
    assert!(!own.is_like(&layout(|records| records.name.push('s'))));
    assert!(!own.is_like(&layout(|records| records.tag = Some(0))));
    assert!(!own.is_like(&layout(|records| records.array = true)));
    let before = ProduceRequest::layout(12).expect("a version that there is");
    assert!(!own.is_like(&before));
}

#[test]
fn a_share_fetch_is_read_field_by_field() {
    let bytes = [
        &[2, b'g', 2, b'm', 0, 0, 0, 7][..],
        &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5],
        &[1, 1, 2],
        &[9; 16],
        // partition 6, offsets 10 to 11, accepted and released; no tagged fields of batch, partition and topic
        &[2, 0, 0, 0, 6, 2],
        &[
            0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 11, 3, 1, 2, 0, 0, 0,
        ],
        &[1, 0, b'?'],
    ]
    .concat();
    let mut input = Input::new(&bytes, 0);
    let request = ShareFetchRequest::decode(2, &mut input).expect("a request");
    assert_eq!(input.left(), 1);
    assert_eq!(
        (request.group_id, request.member_id),
        (Some("g"), Some("m"))
    );
    assert_eq!(request.share_session_epoch, 7);
    let limits = [request.max_wait_ms, request.min_bytes, request.max_bytes];
    assert_eq!(limits, [1, 2, 3]);
    assert_eq!((request.max_records, request.batch_size), (4, 5));
    assert_eq!(
        (request.share_acquire_mode, request.is_renew_ack),
        (1, true)
    );
    let [topic] = &request.topics[..] else {
        panic!("one topic");
    };
    assert_eq!(topic.topic_id, [9; 16]);
    let [partition] = &topic.partitions[..] else {
        panic!("one partition");
    };
    let [batch] = &partition.acknowledgement_batches[..] else {
        panic!("one batch");
    };
    assert_eq!(partition.partition_index, 6);
    assert_eq!((batch.first_offset, batch.last_offset), (10, 11));
    assert_eq!(batch.acknowledge_types, [1, 2]);
    assert!(request.forgotten_topics_data.is_empty());
}

/// Holds the records of responses.
#[derive(Default)]
struct FakeSink(Vec<u8>);

impl Sink for FakeSink {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    fn far(&mut self, id: usize) -> bool {
        if id == 3 {
            self.0.extend_from_slice(b"batch");
        }
        id == 3
    }
}

fn answer(records: Records<'_>) -> ShareFetchResponse<'_> {
    let acquired = AcquiredRecords {
        first_offset: 5,
        last_offset: 6,
        delivery_count: 1,
    };
    let partition = PartitionData {
        partition_index: 2,
        records,
        acquired_records: vec![acquired],
        ..PartitionData::default()
    };
    let topic = ShareFetchableTopicResponse {
        topic_id: [7; 16],
        partitions: vec![partition],
    };
    ShareFetchResponse {
        responses: vec![topic],
        ..ShareFetchResponse::default()
    }
}

#[test]
fn records_that_the_sink_has_are_written_as_if_they_were_there() {
    let (mut far, mut here) = (FakeSink::default(), FakeSink::default());
    answer(Records::Far { len: 5, id: 3 })
        .encode(2, &mut far)
        .expect("a sink that has them");
    answer(Records::Here(b"batch"))
        .encode(2, &mut here)
        .expect("records that are there");
    assert_eq!(far.0, here.0);
    let missing = answer(Records::Far { len: 5, id: 4 }).encode(2, &mut far);
    assert_eq!(missing.unwrap_err().0, "records");
}

#[test]
fn a_string_that_no_length_can_hold_is_not_written() {
    let name = "x".repeat(1 << 15);
    let data = TopicProduceData {
        name: &name,
        ..Default::default()
    };
    let request = ProduceRequest {
        topic_data: vec![data],
        ..Default::default()
    };
    let refused = request.encode(3, &mut Vec::new());
    assert_eq!(refused.unwrap_err().0, "name");
    request
        .encode(12, &mut Vec::new())
        .expect("a compact length says more");
}
