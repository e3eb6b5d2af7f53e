//! The operations of a trace in JSON.

use std::io::{self, BufRead};

use serde::Deserialize;
use sharecore_engine::{AcquireOptions, Config, OffsetRange, RecordState, StateBatch};

/// One operation, parsed.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Init {
        config: Config,
        start_offset: i64,
        state: Vec<StateBatch>,
    },
    Acquire {
        member: String,
        batches: Vec<OffsetRange>,
        options: AcquireOptions,
        at_next: bool,
    },
    Ack {
        member: String,
        batches: Vec<Ack>,
    },
    Release {
        member: String,
    },
    Advance {
        ms: i64,
    },
    LogStart {
        offset: i64,
    },
    Writes {
        fail_next: u32,
        hold: bool,
        error_code: i16,
    },
    Complete {
        count: usize,
        error_code: i16,
    },
    Reload,
    Combine {
        existing: Vec<StateBatch>,
        new: Vec<StateBatch>,
        start_offset: Option<i64>,
    },
}

/// One batch of acknowledgements.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Ack {
    pub first: i64,
    pub last: i64,
    pub types: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawState {
    Tuple(i64, i64, u8, u16),
    Named {
        first: i64,
        last: i64,
        state: u8,
        delivery_count: u16,
    },
}

#[derive(Deserialize)]
struct RawAck {
    first: i64,
    last: i64,
    types: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawBatch {
    Range(i64, i64),
    Ack(RawAck),
}

#[derive(Deserialize)]
struct Raw {
    op: Option<String>,
    member: Option<String>,
    batches: Option<Vec<RawBatch>>,
    start_offset: Option<i64>,
    state_batches: Option<Vec<RawState>>,
    max_delivery_count: Option<u16>,
    max_inflight: Option<i64>,
    lock_ms: Option<i64>,
    renew_enabled: Option<bool>,
    dead_letters: Option<bool>,
    max_fetch_records: Option<i64>,
    batch_size: Option<i64>,
    mode: Option<String>,
    fetch_offset: Option<i64>,
    ms: Option<i64>,
    offset: Option<i64>,
    fail_next: Option<u32>,
    hold: Option<bool>,
    error_code: Option<i16>,
    n: Option<usize>,
    existing: Option<Vec<RawState>>,
    new: Option<Vec<RawState>>,
}

/// Reads a whole trace; an error includes the line number.
pub fn read(input: impl BufRead) -> io::Result<Vec<Op>> {
    let mut ops = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let raw: Raw =
            serde_json::from_str(&line).map_err(|error| bad(number, &error.to_string()))?;
        ops.push(raw.op().map_err(|what| bad(number, &what))?);
    }
    Ok(ops)
}

fn bad(number: usize, what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("line {}: {what}", number + 1),
    )
}

/// State batches in memory of exactly their size, contiguous, as the timed code reads them.
fn states(raw: Option<Vec<RawState>>) -> Result<Vec<StateBatch>, String> {
    let raw = raw.unwrap_or_default();
    let mut batches = Vec::with_capacity(raw.len());
    for batch in raw {
        let (first, last, state, delivery_count) = match batch {
            RawState::Tuple(first, last, state, count) => (first, last, state, count),
            RawState::Named {
                first,
                last,
                state,
                delivery_count,
            } => (first, last, state, delivery_count),
        };
        let state =
            RecordState::from_id(state).ok_or_else(|| format!("{state} is no record state"))?;
        batches.push(StateBatch {
            first,
            last,
            state,
            delivery_count,
        });
    }
    Ok(batches)
}

impl Raw {
    fn op(self) -> Result<Op, String> {
        let Some(op) = self.op.as_deref() else {
            return Ok(Op::Combine {
                existing: states(self.existing)?,
                new: states(self.new)?,
                start_offset: self.start_offset.filter(|&offset| offset >= 0),
            });
        };
        let member = self.member.unwrap_or_default();
        Ok(match op {
            "init" => {
                let config = Config::default();
                Op::Init {
                    config: Config {
                        max_delivery_count: self
                            .max_delivery_count
                            .unwrap_or(config.max_delivery_count),
                        max_inflight: self.max_inflight.unwrap_or(config.max_inflight),
                        lock_ms: self.lock_ms.unwrap_or(config.lock_ms),
                        renew_enabled: self.renew_enabled.unwrap_or(config.renew_enabled),
                        dead_letters: self.dead_letters.unwrap_or(config.dead_letters),
                    },
                    start_offset: self.start_offset.unwrap_or(0),
                    state: states(self.state_batches)?,
                }
            }
            "acquire" => {
                let batches =
                    self.batches
                        .unwrap_or_default()
                        .into_iter()
                        .map(|batch| match batch {
                            RawBatch::Range(first, last) => Ok(OffsetRange::new(first, last)),
                            RawBatch::Ack(_) => Err("acquire needs [first, last]".to_owned()),
                        });
                Op::Acquire {
                    member,
                    batches: batches.collect::<Result<_, _>>()?,
                    options: AcquireOptions {
                        fetch_offset: self.fetch_offset.unwrap_or(-1),
                        max_fetch_records: self.max_fetch_records.unwrap_or(500),
                        batch_size: self.batch_size.unwrap_or(500),
                        record_limit: self.mode.as_deref() == Some("record_limit"),
                    },
                    at_next: self.fetch_offset.is_none_or(|offset| offset < 0),
                }
            }
            "ack" => {
                let batches =
                    self.batches
                        .unwrap_or_default()
                        .into_iter()
                        .map(|batch| match batch {
                            RawBatch::Ack(RawAck { first, last, types }) => {
                                Ok(Ack { first, last, types })
                            }
                            RawBatch::Range(..) => Err("ack needs {first, last, types}".to_owned()),
                        });
                Op::Ack {
                    member,
                    batches: batches.collect::<Result<_, _>>()?,
                }
            }
            "release" => Op::Release { member },
            "advance" => Op::Advance {
                ms: self.ms.ok_or("advance needs ms")?,
            },
            "lso" => Op::LogStart {
                offset: self.offset.ok_or("lso needs offset")?,
            },
            "writes" => Op::Writes {
                fail_next: self.fail_next.unwrap_or(0),
                hold: self.hold.unwrap_or(false),
                error_code: self.error_code.unwrap_or(-1),
            },
            "complete" => Op::Complete {
                count: self.n.unwrap_or(usize::MAX),
                error_code: self.error_code.unwrap_or(0),
            },
            "reload" => Op::Reload,
            other => return Err(format!("unknown operation {other}")),
        })
    }
}
