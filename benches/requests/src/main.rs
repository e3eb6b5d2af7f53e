//! Clients that send one small request after the other and wait for each answer, all from one thread, so that the
//! load costs less than what it measures. The figures go to standard output as `name value` lines.
//!
//! `small-requests PROTOCOL ADDRESS CLIENTS SECONDS KEY=VALUE...`; PROTOCOL is one of `produce`, `share`,
//! `share-ride`, `end-to-end` (Kafka's), `nats-produce`, `nats-share`, `redis-produce`, `redis-share`.

mod bytes;
mod kafka;
mod kafka_share;
mod nats;
mod redis;
mod run;

use std::collections::HashMap;
use std::env;
use std::process::ExitCode;
use std::str::FromStr;

use run::{Load, Talk};

/// The `KEY=VALUE` words of the command line.
struct Settings(HashMap<String, String>);

impl Settings {
    fn get<T: FromStr>(&self, key: &str) -> Result<T, String> {
        let value = self
            .0
            .get(key)
            .ok_or_else(|| format!("{key}=... is missing"))?;
        value
            .parse()
            .map_err(|_| format!("{key}={value} cannot be read"))
    }
}

fn clients(
    protocol: &str,
    count: usize,
    settings: &Settings,
) -> Result<Vec<Box<dyn Talk>>, String> {
    let record_bytes = settings.get("record_bytes").unwrap_or(100);
    let partitions: usize = settings.get("partitions").unwrap_or(16);
    let from = settings.get("first_client").unwrap_or(0);
    let replicas = settings.get("replicas").unwrap_or(0);
    let mut made: Vec<Box<dyn Talk>> = Vec::with_capacity(count);
    for number in from..from + count {
        let partition = number % partitions;
        let client: Box<dyn Talk> = match protocol {
            "produce" => {
                let in_flight = settings.get("in_flight").unwrap_or(1);
                Box::new(kafka::Producer::new(
                    settings.get::<kafka::TopicId>("topic")?,
                    partition,
                    &kafka::batch(record_bytes, settings.get("records").unwrap_or(1)),
                    in_flight,
                ))
            }
            "share" | "share-ride" => {
                let own = (0..partitions)
                    .filter(|each| each % count.min(partitions) == number % count.min(partitions));
                let topic = settings.get::<kafka::TopicId>("topic")?;
                let group: String = settings.get("group")?;
                let rides = protocol == "share-ride";
                Box::new(kafka_share::Consumer::new(
                    topic,
                    &group,
                    number,
                    own.collect(),
                    1,
                    rides,
                ))
            }
            "end-to-end" if number == from => {
                let rate = settings.get("rate")?;
                Box::new(kafka::Pacer::new(
                    settings.get::<kafka::TopicId>("topic")?,
                    partitions,
                    record_bytes,
                    rate,
                ))
            }
            "end-to-end" => {
                let topic = settings.get::<kafka::TopicId>("topic")?;
                let group: String = settings.get("group")?;
                Box::new(
                    kafka_share::Consumer::new(
                        topic,
                        &group,
                        number,
                        (0..partitions).collect(),
                        500,
                        true,
                    )
                    .measure_from_record_time(),
                )
            }
            "nats-produce" => Box::new(nats::Producer::new(number, partition, record_bytes)),
            "nats-share" => Box::new(nats::Consumer::new(number)),
            "redis-produce" => Box::new(redis::Producer::new(partition, record_bytes, replicas)),
            "redis-share" => Box::new(redis::Consumer::new(number, partition, replicas)),
            _ => return Err(format!("there is no protocol {protocol}")),
        };
        made.push(client);
    }
    Ok(made)
}

fn measure() -> Result<(), String> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [protocol, address, count, seconds, rest @ ..] = words.as_slice() else {
        return Err("small-requests PROTOCOL ADDRESS CLIENTS SECONDS KEY=VALUE...".into());
    };
    let number = |text: &String| {
        text.parse::<f64>()
            .map_err(|_| format!("{text} is no number"))
    };
    let pairs = rest.iter().filter_map(|word| word.split_once('='));
    let settings = Settings(
        pairs
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
    );
    let count = number(count)? as usize + usize::from(protocol == "end-to-end");
    let address = address
        .parse()
        .map_err(|_| format!("{address} is no address"))?;
    let pids: String = settings.get("pid").unwrap_or_default();
    let load = Load {
        address,
        seconds: number(seconds)?,
        warm_up_seconds: settings.get("warm_up").unwrap_or(1.0),
        requests_max: settings.get("requests").unwrap_or(u64::MAX),
        broker_pids: pids.split(',').filter_map(|pid| pid.parse().ok()).collect(),
    };
    let figures = load.run(clients(protocol, count, &settings)?)?;
    for (name, value) in figures {
        println!("{name} {value}");
    }
    Ok(())
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
