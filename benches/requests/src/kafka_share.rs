//! A member of a share group that asks for records and settles each before it asks for more.

use std::time::Duration;

use crate::bytes::{Cursor, Put};
use crate::kafka::{PASSING, TopicId, VALUE_AT, answer, request, wall_nanos};
use crate::run::{Ended, Outgoing, Talk};

const FETCH: (i16, i16) = (78, 2);
const ACKNOWLEDGE: (i16, i16) = (79, 2);
const ACCEPT: u8 = 1;
const WAIT_MS: i32 = 500;
const BYTES_MAX: i32 = 1 << 20;
const BATCH_LENGTH_AT: usize = 8;
const BATCH_OVERHEAD: usize = 12;

/// Partition, first and last offset of what is held.
type Held = Vec<(i32, i64, i64)>;

/// Fetches, and acknowledges either by a request of its own or with the next fetch.
pub struct Consumer {
    topic: TopicId,
    group: String,
    member: String,
    partitions: Vec<usize>,
    records_max: i32,
    rides: bool,
    from_record_time: bool,
    epoch: i32,
    held: Held,
    acknowledging: bool,
}

impl Consumer {
    pub fn new(
        topic: TopicId,
        group: &str,
        number: usize,
        partitions: Vec<usize>,
        records_max: i32,
        rides: bool,
    ) -> Self {
        let member = format!("member-{number}");
        let group = group.to_string();
        Consumer {
            topic,
            group,
            member,
            partitions,
            records_max,
            rides,
            from_record_time: false,
            epoch: 0,
            held: Vec::new(),
            acknowledging: false,
        }
    }

    /// Measures records from the moment that they carry instead of requests.
    pub fn measure_from_record_time(mut self) -> Self {
        self.from_record_time = true;
        self
    }

    fn head(&mut self, out: &mut Vec<u8>) {
        out.string(&self.group);
        out.string(&self.member);
        out.int(self.epoch.to_be_bytes());
        self.epoch += 1;
    }

    fn acknowledgements(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            out.uvarint(1);
            return;
        }
        out.uvarint(2);
        out.int(self.topic.0);
        out.uvarint(held.len() + 1);
        for (partition, first, last) in held {
            out.int(partition.to_be_bytes());
            out.uvarint(2);
            out.int(first.to_be_bytes());
            out.int(last.to_be_bytes());
            out.uvarint(2);
            out.push(ACCEPT);
            out.int([0; 2]);
        }
        out.push(0);
    }

    fn fetch(&mut self, out: &mut Vec<u8>) {
        request(out, FETCH, |out| {
            let first = self.epoch == 0;
            self.head(out);
            for value in [WAIT_MS, 1, BYTES_MAX, self.records_max, self.records_max] {
                out.int(value.to_be_bytes());
            }
            out.int([0; 2]);
            if first {
                out.uvarint(2);
                out.int(self.topic.0);
                out.uvarint(self.partitions.len() + 1);
                for partition in &self.partitions {
                    out.int((*partition as i32).to_be_bytes());
                    out.int([1, 0]);
                }
                out.push(0);
            } else {
                self.acknowledgements(out);
            }
            out.int([1, 0]);
        });
    }

    fn acknowledge(&mut self, out: &mut Vec<u8>) {
        self.acknowledging = true;
        request(out, ACKNOWLEDGE, |out| {
            self.head(out);
            out.push(0);
            self.acknowledgements(out);
            out.push(0);
        });
    }

    /// Walks an answer of either API; gives the times of the records in it.
    fn read(&mut self, mut body: Cursor<'_>, fetched: bool) -> Result<Vec<Duration>, String> {
        let name = if fetched {
            "ShareFetch"
        } else {
            "ShareAcknowledge"
        };
        body.i32();
        refuse(name, body.i16())?;
        body.sized();
        body.i32();
        let mut times = Vec::new();
        for _ in 0..body.length() {
            body.bytes(16);
            for _ in 0..body.length() {
                let partition = body.i32();
                let code = body.i16();
                if !PASSING.contains(&code) {
                    refuse(name, code)?;
                }
                body.sized();
                if fetched {
                    refuse(name, body.i16())?;
                    body.sized();
                }
                body.bytes(8);
                body.tags();
                if fetched {
                    let records = body.sized();
                    if self.from_record_time {
                        sent_times(records, &mut times);
                    }
                    for _ in 0..body.length() {
                        self.held.push((partition, body.i64(), body.i64()));
                        body.bytes(2);
                        body.tags();
                    }
                }
                body.tags();
            }
            body.tags();
        }
        Ok(times)
    }
}

impl Talk for Consumer {
    fn start(&mut self, out: &mut Outgoing) {
        self.fetch(&mut out.bytes);
        out.begin();
    }

    fn take(&mut self, input: &[u8], out: &mut Outgoing) -> Result<Option<(usize, Ended)>, String> {
        let Some((size, body)) = answer(input) else {
            return Ok(None);
        };
        let fetched = !std::mem::take(&mut self.acknowledging);
        // the request that is answered carried what was held until then
        let settled = !fetched || (self.rides && self.epoch > 2);
        let times = self.read(body, fetched)?;
        if fetched && !self.rides && !self.held.is_empty() {
            self.acknowledge(&mut out.bytes);
            return Ok(Some((size, Ended::Nothing)));
        }
        let counts = settled && (!fetched || !self.held.is_empty());
        self.fetch(&mut out.bytes);
        out.begin();
        let ended = if self.from_record_time {
            Ended::Records(times)
        } else if counts {
            Ended::Request
        } else {
            Ended::Nothing
        };
        Ok(Some((size, ended)))
    }
}

fn refuse(name: &str, code: i16) -> Result<(), String> {
    if code == 0 {
        Ok(())
    } else {
        Err(format!("{name} was answered with error {code}"))
    }
}

fn sent_times(mut records: &[u8], times: &mut Vec<Duration>) {
    let now = wall_nanos();
    while records.len() > VALUE_AT + 8 {
        let length = records[BATCH_LENGTH_AT..BATCH_OVERHEAD]
            .try_into()
            .expect("four bytes");
        let sent = u64::from_be_bytes(
            records[VALUE_AT..VALUE_AT + 8]
                .try_into()
                .expect("eight bytes"),
        );
        times.push(Duration::from_nanos(now.saturating_sub(sent)));
        records = &records[BATCH_OVERHEAD + i32::from_be_bytes(length) as usize..];
    }
}
