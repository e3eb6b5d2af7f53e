//! Kafka's frames and record batches, and clients that produce.

use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::bytes::{Cursor, Put};
use crate::run::{Ended, Outgoing, Talk};

const PRODUCE: (i16, i16) = (0, 13);
/// What a new topic's or group's first requests may be told; a client tries again.
pub const PASSING: [i16; 6] = [3, 5, 6, 15, 16, 100];
const CLIENT_ID: &str = "small";
/// Where the value of the only record of a batch begins, and with it the time it was sent at.
pub const VALUE_AT: usize = 69;
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21;

/// A topic's id, as 32 hexadecimal digits.
#[derive(Clone, Copy)]
pub struct TopicId(pub [u8; 16]);

impl FromStr for TopicId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits: String = text.chars().filter(|each| *each != '-').collect();
        let id = u128::from_str_radix(&digits, 16).map_err(|_| ())?;
        Ok(TopicId(id.to_be_bytes()))
    }
}

/// Appends a request whose size is filled in behind its body.
pub fn request(out: &mut Vec<u8>, (key, version): (i16, i16), body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.int([0; 4]);
    out.int(key.to_be_bytes());
    out.int(version.to_be_bytes());
    out.int([0; 4]);
    out.int((CLIENT_ID.len() as i16).to_be_bytes());
    out.extend_from_slice(CLIENT_ID.as_bytes());
    out.push(0);
    body(out);
    let size = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// The body of the first answer in `input`, behind its header, and its length with all.
pub fn answer(input: &[u8]) -> Option<(usize, Cursor<'_>)> {
    let size = i32::from_be_bytes(input.get(..4)?.try_into().ok()?) as usize + 4;
    let frame = input.get(..size)?;
    Some((size, Cursor { rest: &frame[9..] }))
}

/// A batch of records without keys.
pub fn batch(record_bytes: usize, count: usize) -> Vec<u8> {
    let mut records = Vec::new();
    for number in 0..count {
        let mut record = vec![0, 0];
        zigzag(&mut record, number);
        record.push(1);
        zigzag(&mut record, record_bytes);
        if number == 0 {
            assert_eq!(
                61 + 1 + usize::from(record_bytes + 6 > 63) + record.len(),
                VALUE_AT,
                "values of 64 to 8,000 bytes"
            );
        }
        record.extend((0..record_bytes).map(|_| b'x'));
        record.push(0);
        zigzag(&mut records, record.len());
        records.extend_from_slice(&record);
    }
    let now_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64);
    let mut out = Vec::new();
    out.int(0i64.to_be_bytes());
    out.int(((49 + records.len()) as i32).to_be_bytes());
    out.int((-1i32).to_be_bytes());
    out.push(2);
    out.int([0; 4]);
    out.int(0i16.to_be_bytes());
    out.int((count as i32 - 1).to_be_bytes());
    out.int(now_ms.to_be_bytes());
    out.int(now_ms.to_be_bytes());
    out.int((-1i64).to_be_bytes());
    out.int((-1i16).to_be_bytes());
    out.int((-1i32).to_be_bytes());
    out.int((count as i32).to_be_bytes());
    out.extend_from_slice(&records);
    seal(&mut out);
    out
}

fn zigzag(out: &mut Vec<u8>, value: usize) {
    out.uvarint(value << 1);
}

fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[CRC_FROM..]);
    batch[CRC_AT..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
}

fn produce(out: &mut Vec<u8>, topic: TopicId, partition: usize, batch: &[u8]) {
    request(out, PRODUCE, |out| {
        out.push(0);
        out.int((-1i16).to_be_bytes());
        out.int(30_000i32.to_be_bytes());
        out.uvarint(2);
        out.int(topic.0);
        out.uvarint(2);
        out.int((partition as i32).to_be_bytes());
        out.uvarint(batch.len() + 1);
        out.extend_from_slice(batch);
        out.int([0; 3]);
    });
}

/// Length of the answer, and whether the record is in.
fn produced(input: &[u8]) -> Result<Option<(usize, bool)>, String> {
    let Some((size, mut body)) = answer(input) else {
        return Ok(None);
    };
    body.uvarint();
    body.bytes(16);
    body.uvarint();
    body.i32();
    match body.i16() {
        0 => Ok(Some((size, true))),
        code if PASSING.contains(&code) => Ok(Some((size, false))),
        code => Err(format!("Produce was answered with error {code}")),
    }
}

/// One batch a request; more than one request at a time to fill a topic, and for throughput in batches.
pub struct Producer {
    request: Vec<u8>,
    in_flight: usize,
}

impl Producer {
    pub fn new(topic: TopicId, partition: usize, batch: &[u8], in_flight: usize) -> Self {
        let mut request = Vec::new();
        produce(&mut request, topic, partition, batch);
        Producer { request, in_flight }
    }
}

impl Talk for Producer {
    fn start(&mut self, out: &mut Outgoing) {
        for _ in 0..self.in_flight {
            out.bytes.extend_from_slice(&self.request);
        }
        out.begin();
    }

    fn take(&mut self, input: &[u8], out: &mut Outgoing) -> Result<Option<(usize, Ended)>, String> {
        let Some((size, done)) = produced(input)? else {
            return Ok(None);
        };
        out.bytes.extend_from_slice(&self.request);
        out.begin();
        let ended = if done { Ended::Request } else { Ended::Nothing };
        Ok(Some((size, ended)))
    }
}

/// One record a request at a steady rate, whatever the answers take; each carries the moment it was sent.
pub struct Pacer {
    topic: TopicId,
    partitions: usize,
    batch: Vec<u8>,
    every: Duration,
    due: Option<Instant>,
    sent: usize,
}

impl Pacer {
    pub fn new(topic: TopicId, partitions: usize, record_bytes: usize, rate: f64) -> Self {
        let every = Duration::from_secs_f64(1.0 / rate);
        Pacer {
            topic,
            partitions,
            batch: batch(record_bytes, 1),
            every,
            due: None,
            sent: 0,
        }
    }
}

impl Talk for Pacer {
    fn start(&mut self, _out: &mut Outgoing) {}

    fn take(
        &mut self,
        input: &[u8],
        _out: &mut Outgoing,
    ) -> Result<Option<(usize, Ended)>, String> {
        Ok(produced(input)?.map(|(size, _)| (size, Ended::Nothing)))
    }

    fn tick(&mut self, now: Instant, out: &mut Outgoing) -> Option<Instant> {
        let mut due = self.due.unwrap_or(now);
        while due <= now {
            self.batch[VALUE_AT..VALUE_AT + 8].copy_from_slice(&wall_nanos().to_be_bytes());
            seal(&mut self.batch);
            produce(
                &mut out.bytes,
                self.topic,
                self.sent % self.partitions,
                &self.batch,
            );
            self.sent += 1;
            due += self.every;
        }
        self.due = Some(due);
        Some(due)
    }
}

/// Nanoseconds since 1970: the same clock for whoever writes a record and whoever reads it.
pub fn wall_nanos() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}
