//! Batches as clients send them, and options that make a store fill many segments.
#![allow(dead_code, reason = "every test binary uses a part")]

pub(crate) mod keyed;
pub(crate) mod process;

use std::path::Path;

use sharecore_store::{Appended, Change, LogId, Options, Refusal, Store, Want};

/// A client's batch with the properties that tests vary.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) records: i32,
    pub(crate) value_bytes: usize,
    pub(crate) timestamp: i64,
    pub(crate) attributes: i16,
    pub(crate) producer: (i64, i16, i32),
}

pub(crate) const PLAIN: Client = Client {
    records: 1,
    value_bytes: 10,
    timestamp: 1000,
    attributes: 0,
    producer: (-1, -1, -1),
};

pub(crate) const TRANSACTIONAL: i16 = 0x10;

impl Client {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut records = Vec::new();
        for delta in 0..self.records {
            let mut body = vec![0, 0];
            varint(&mut body, i64::from(delta));
            varint(&mut body, -1);
            varint(&mut body, self.value_bytes as i64);
            body.resize(body.len() + self.value_bytes, b'v');
            varint(&mut body, 0);
            varint(&mut records, body.len() as i64);
            records.extend_from_slice(&body);
        }
        let (id, epoch, sequence) = self.producer;
        let mut out = Vec::new();
        out.extend_from_slice(&0_i64.to_be_bytes());
        out.extend_from_slice(&(49 + records.len() as i32).to_be_bytes());
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        out.push(2);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.attributes.to_be_bytes());
        out.extend_from_slice(&(self.records - 1).to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&epoch.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        out.extend_from_slice(&self.records.to_be_bytes());
        out.extend_from_slice(&records);
        seal(&mut out);
        out
    }
}

pub(crate) fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Segments of 4 KB and almost no cache: everything goes through the disk.
pub(crate) fn tiny() -> Options {
    Options {
        segment_bytes: 4 << 10,
        cache_bytes: 500,
        ..Options::default()
    }
}

pub(crate) fn open(dir: &Path, options: &Options) -> Store {
    Store::open(dir, options).expect("a store that opens")
}

pub(crate) fn create_log(store: &Store) -> LogId {
    let id = store.new_log_id();
    let sequence = store.change(vec![Change::CreateLog(id)]).expect("room");
    store.wait(sequence);
    id
}

/// Appends and waits.
pub(crate) fn put(store: &Store, log: LogId, client: Client) -> Result<Appended, Refusal> {
    let appended = store.append(log, &client.bytes(), 1000)?;
    store.wait(appended.sequence);
    Ok(appended)
}

pub(crate) const ALL: Want = Want {
    max_bytes: usize::MAX,
    max_records: i64::MAX,
    limit: None,
    at_least_one: true,
};

/// First and last offset of all batches from `offset` to the end.
pub(crate) fn batches(store: &Store, log: LogId, offset: i64) -> Vec<(i64, i64)> {
    let slice = store.read(log, offset, ALL).expect("an offset of the log");
    let mut bytes = vec![0; slice.size];
    slice.copy_to(&mut bytes).expect("a readable disk");
    slice.batches
}
