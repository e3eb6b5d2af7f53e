//! The store's state, besides its segments, at the beginning of one of them: the journal is replayed from there, not
//! from its beginning.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
    path::{Path, PathBuf},
};

use crate::{
    LogId,
    cleaner::Progress,
    error::StoreError,
    files::{self, File},
    frame::Fields,
    log::Log,
    pending::Pending,
    producer::{Aborted, Producer, Remembered},
    segment::{self, Kind},
    shipping::Shipping,
    state::{Group, State},
    store::Change,
};

const MAGIC: &[u8; 8] = b"SCchk-2\n";

const _: () = assert!(MAGIC.len() == MAGIC_1.len(), "each has a length");
/// Checkpoints from before log compaction.
const MAGIC_1: &[u8; 8] = b"SCchk-1\n";

/// Where the journal continues after a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since {
    /// The segment that begins after it.
    pub(crate) segment: u64,
    pub(crate) frame: u64,
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.u64(value.cast_unsigned());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn count(&mut self, value: usize) {
        // a truncated count would make the rest unreadable
        assert!(
            u32::try_from(value).is_ok(),
            "{value} is too large for a count"
        );
        self.u32(value as u32);
    }

    fn sized(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

/// Encodes the durable part of `state`; without the contents of `group`, writes waiting for the bucket, and staged
/// ones.
pub(crate) fn encode(state: &State, group: Option<&Group>, since: Since) -> Vec<u8> {
    let pending = || {
        group
            .into_iter()
            .flat_map(|g| &g.pending)
            .chain(state.shipping.iter().flat_map(Shipping::pending))
            .chain(&state.staged)
    };
    let created: Vec<LogId> = pending().flat_map(created_by).collect();
    let mut before: HashMap<LogId, HashMap<i64, Option<&Producer>>> = HashMap::new();
    for each in pending() {
        if let Pending::Append {
            log,
            undo: Some(undo),
            ..
        } = each
        {
            let first = before.entry(*log).or_default().entry(undo.producer_id);
            first.or_insert(undo.before.as_ref());
        }
    }
    let mut out = Out(MAGIC.to_vec());
    out.u64(since.segment);
    out.u64(since.frame);
    out.u64(state.next_log);
    out.u64(state.segments.next_id());
    let sealed: Vec<_> = state
        .segments
        .iter()
        .filter(|(id, segment)| *id < since.segment || segment.kind == Kind::Compact)
        .collect();
    out.count(sealed.len());
    for (id, segment) in sealed {
        out.u64(id);
        out.u32(u32::from(segment.kind == Kind::Compact));
        out.u64(segment.bytes);
    }
    out.count(state.catalog.len());
    for (key, value) in &state.catalog {
        out.sized(key);
        out.sized(value);
    }
    out.count(state.logs.len() - created.len());
    for (id, log) in state.logs.iter().filter(|(id, _)| !created.contains(id)) {
        out.u64(*id);
        encode_log(&mut out, log, before.get(id).unwrap_or(&HashMap::new()));
    }
    let crc = crc32c::crc32c(&out.0);
    out.u32(crc);
    debug_assert_eq!(
        decode(&out.0, &mut State::new(PathBuf::new(), 0, 0, usize::MAX)),
        Some(since),
        "a checkpoint that cannot be read"
    );
    out.0
}

fn created_by(pending: &Pending) -> impl Iterator<Item = LogId> {
    let changes = match pending {
        Pending::Catalog(changes) => changes.as_slice(),
        _ => &[],
    };
    changes.iter().filter_map(|change| match change {
        Change::CreateLog(id) => Some(*id),
        _ => None,
    })
}

fn encode_log(out: &mut Out, log: &Log, before: &HashMap<i64, Option<&Producer>>) {
    out.i64(log.start);
    out.i64(log.durable_end);
    out.i64(log.cleaned.end);
    out.i64(log.cleaned.covered);
    out.u64(log.cleaned.since);
    let (producers, aborted) = log.producers.durable(before, log.durable_end);
    out.count(producers.len());
    for (id, producer) in producers {
        out.i64(id);
        out.u32(u32::from(producer.epoch.cast_unsigned()));
        out.u32(producer.coordinator_epoch.cast_unsigned());
        out.i64(producer.seen_ms);
        out.i64(producer.transaction_start.unwrap_or(-1));
        out.count(producer.batches.len());
        for batch in &producer.batches {
            out.u32(batch.first_sequence.cast_unsigned());
            out.u32(batch.last_sequence.cast_unsigned());
            out.i64(batch.last_offset);
            out.u32(batch.offset_delta.cast_unsigned());
            out.i64(batch.timestamp);
        }
    }
    out.count(aborted.len());
    for each in aborted {
        out.i64(each.producer_id);
        out.i64(each.first_offset);
        out.i64(each.last_offset);
    }
}

/// Decodes the result of `encode` into an empty state.
fn decode(bytes: &[u8], state: &mut State) -> Option<Since> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    let (magic, _) = body.split_first_chunk::<8>()?;
    if u32::from_le_bytes(*crc) != crc32c::crc32c(body) || ![MAGIC, MAGIC_1].contains(&magic) {
        return None;
    }
    let mut fields = Fields { rest: &body[8..] };
    let since = Since {
        segment: fields.u64()?,
        frame: fields.u64()?,
    };
    state.next_log = fields.u64()?;
    state.segments.given_below(fields.u64()?);
    for _ in 0..fields.u32()? {
        let id = fields.u64()?;
        let kind = if fields.u32()? == 1 {
            Kind::Compact
        } else {
            Kind::Journal
        };
        state.segments.restore(id, kind, fields.u64()?);
    }
    for _ in 0..fields.u32()? {
        let key = fields.sized()?.to_vec();
        state.catalog.insert(key, fields.sized()?.to_vec());
    }
    for _ in 0..fields.u32()? {
        let id = fields.u64()?;
        state
            .logs
            .insert(id, decode_log(&mut fields, magic == MAGIC)?);
    }
    fields.rest.is_empty().then_some(since)
}

fn decode_log(fields: &mut Fields<'_>, has_progress: bool) -> Option<Log> {
    let mut log = Log {
        start: fields.i64()?,
        durable_end: fields.i64()?,
        ..Log::default()
    };
    if has_progress {
        log.cleaned = Progress {
            end: fields.i64()?,
            covered: fields.i64()?,
            since: fields.u64()?,
        };
    }
    let producers: Option<Vec<_>> = (0..fields.u32()?)
        .map(|_| decode_producer(fields))
        .collect();
    let aborted = (0..fields.u32()?).map(|_| {
        Some(Aborted {
            producer_id: fields.i64()?,
            first_offset: fields.i64()?,
            last_offset: fields.i64()?,
        })
    });
    let aborted: Option<Vec<_>> = aborted.collect();
    log.producers.restore(producers?, aborted?);
    Some(log)
}

fn decode_producer(fields: &mut Fields<'_>) -> Option<(i64, Producer)> {
    let id = fields.i64()?;
    let epoch = (fields.u32()? as u16).cast_signed();
    let coordinator_epoch = fields.u32()?.cast_signed();
    let (seen_ms, transaction_start) = (fields.i64()?, fields.i64()?);
    let batches = (0..fields.u32()?).map(|_| {
        Some(Remembered {
            first_sequence: fields.u32()?.cast_signed(),
            last_sequence: fields.u32()?.cast_signed(),
            last_offset: fields.i64()?,
            offset_delta: fields.u32()?.cast_signed(),
            timestamp: fields.i64()?,
        })
    });
    let producer = Producer {
        epoch,
        coordinator_epoch,
        seen_ms,
        transaction_start: (transaction_start >= 0).then_some(transaction_start),
        batches: batches.collect::<Option<_>>()?,
        // a marker was last if a coordinator ended a transaction and none is open since, except for a non-transactional
        // batch
        ended: coordinator_epoch >= 0 && transaction_start < 0,
    };
    Some((id, producer))
}

/// Where the journal continues after a checkpoint, and the sealed segments of the state; `None` if it cannot be read.
pub(crate) fn parts(bytes: &[u8]) -> Option<(Since, Vec<(u64, Kind)>)> {
    let mut state = State::new(PathBuf::new(), 0, 0, usize::MAX);
    let since = decode(bytes, &mut state)?;
    let segments = state.segments.iter().map(|(id, it)| (id, it.kind));
    Some((since, segments.collect()))
}

/// The catalog in a checkpoint; `None` where it cannot be read.
pub(crate) fn catalog(bytes: &[u8]) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut state = State::new(PathBuf::new(), 0, 0, usize::MAX);
    decode(bytes, &mut state)?;
    Some(state.catalog)
}

/// The bytes of a checkpoint in a directory.
pub(crate) fn bytes(dir: &Path, segment: u64) -> Result<Vec<u8>, StoreError> {
    let path = path(dir, segment);
    files::read(&path).map_err(StoreError::io(&path))
}

fn path(dir: &Path, segment: u64) -> PathBuf {
    dir.join(format!("{segment:016x}.checkpoint"))
}

/// Writes a checkpoint under its name atomically, and removes earlier ones.
pub(crate) fn save(dir: &Path, segment: u64, bytes: &[u8]) -> Result<(), StoreError> {
    assert!(!bytes.is_empty(), "an empty checkpoint");
    let (path, new) = (path(dir, segment), dir.join("checkpoint.new"));
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        files::rename(&new, &path)
    };
    write().map_err(StoreError::io(&path))?;
    segment::sync_dir(dir)?;
    for id in segment::list(dir, "checkpoint")?
        .into_iter()
        .filter(|id| *id < segment)
    {
        // a leftover is harmless: the newest counts
        let _ = files::remove(&self::path(dir, id));
    }
    Ok(())
}

/// Reads the newest checkpoint into an empty state; a store that never filled a segment has none.
pub(crate) fn load(dir: &Path, state: &mut State) -> Result<Option<Since>, StoreError> {
    let Some(segment) = segment::list(dir, "checkpoint")?.pop() else {
        return Ok(None);
    };
    let path = path(dir, segment);
    let bytes = files::read(&path).map_err(StoreError::io(&path))?;
    match decode(&bytes, state) {
        Some(since) if since.segment == segment => Ok(Some(since)),
        _ => Err(StoreError::damaged(
            path,
            0,
            "the checkpoint does not match its checksum",
        )),
    }
}
