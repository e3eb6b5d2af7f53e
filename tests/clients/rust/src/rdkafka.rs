//! rdkafka: BOOTSTRAP TOPIC GROUP COUNT

use std::env;
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};

const SOON: Duration = Duration::from_secs(60);
const LATE: Duration = Duration::from_secs(180);

fn producer(settings: &[(&str, &str)]) -> ThreadedProducer<Confirming> {
    let mut config = ClientConfig::new();
    for (name, value) in settings {
        config.set(*name, *value);
    }
    config.create_with_context(Confirming).expect("a producer")
}

/// Prints each record that was confirmed, unless it belongs to a transaction.
struct Confirming;

impl rdkafka::ClientContext for Confirming {}

impl rdkafka::producer::ProducerContext for Confirming {
    type DeliveryOpaque = Box<Option<usize>>;

    fn delivery(
        &self,
        delivery: &rdkafka::message::DeliveryResult<'_>,
        number: Self::DeliveryOpaque,
    ) {
        match (delivery, *number) {
            (Ok(_), Some(number)) => println!("produced {number}"),
            (Ok(_), None) => (),
            (Err((error, _)), Some(_)) => panic!("{error}"),
            // of a transaction that was aborted
            (Err(_), None) => (),
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, bootstrap, topic, group, count] = &arguments[..] else {
        panic!("BOOTSTRAP TOPIC GROUP COUNT")
    };
    let count: usize = count.parse().expect("a number");

    let codecs = ["none", "gzip", "lz4", "zstd", "snappy"];
    for (part, codec) in codecs.iter().enumerate() {
        let producer = producer(&[
            ("bootstrap.servers", bootstrap),
            ("enable.idempotence", "true"),
            ("compression.type", codec),
        ]);
        for number in (part..count).step_by(codecs.len()) {
            let (key, value) = (format!("k{}", number % 10), number.to_string());
            let record = BaseRecord::with_opaque_to(topic, Box::new(Some(number)))
                .key(&key)
                .payload(&value);
            producer
                .send(record)
                .map_err(|(error, _)| error)
                .expect("room");
        }
        producer.flush(SOON).expect("a flush");
    }

    let writer = producer(&[
        ("bootstrap.servers", bootstrap),
        ("transactional.id", group),
    ]);
    writer.init_transactions(SOON).expect("transactions");
    let into = format!("{topic}-tx");
    for prefix in ["bad-", ""] {
        writer.begin_transaction().expect("a transaction");
        for number in 0..count {
            let value = format!("{prefix}{number}");
            let record =
                BaseRecord::<(), String, _>::with_opaque_to(&into, Box::new(None)).payload(&value);
            writer
                .send(record)
                .map_err(|(error, _)| error)
                .expect("room");
        }
        writer.flush(SOON).expect("a flush");
        if prefix.is_empty() {
            writer.commit_transaction(SOON).expect("a commit");
        } else {
            writer.abort_transaction(SOON).expect("an abort");
        }
    }
    for number in 0..count {
        println!("committed {number}");
    }

    let mut read = 0;
    let until = Instant::now() + LATE;
    // the first member is one of the classic protocol, the second of KIP-848's
    for (wanted, protocol) in [(count / 2, "classic"), (count, "consumer")] {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", group)
            .set("group.protocol", protocol)
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .create()
            .expect("a consumer");
        consumer.subscribe(&[topic]).expect("a subscription");
        while read < wanted {
            assert!(Instant::now() < until, "{read} records were read");
            let Some(record) = consumer.poll(Duration::from_secs(1)) else {
                continue;
            };
            let record = record.expect("a record");
            println!(
                "consumed {}",
                record
                    .payload_view::<str>()
                    .expect("a value")
                    .expect("a text")
            );
            read += 1;
            consumer
                .commit_message(&record, CommitMode::Sync)
                .expect("a commit");
        }
    }
}
