//! Surveys which parts of a directory are intact: every file is read from end to end, and nothing is changed.
//!
//! A store is opened or refused as a whole; a survey checks its parts: each frame of the journal and each batch in an
//! index is checked against its own checksum, and damage is reported by file and byte, and by log and offset.

mod batches;
mod files;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    LogId,
    checkpoint::{self, Since},
    directory_lock::DirectoryLock,
    error::StoreError,
    files::File,
    format,
    log::Log,
    recover::{self, Torn},
    segment::{self, Kind},
    state::State,
};

/// Called with the bytes read so far and the total.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// A damaged place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// Its position.
    pub at: u64,
    /// What is wrong.
    pub what: String,
}

/// The intact part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The log.
    pub log: LogId,
    /// Its first offset.
    pub start: i64,
    /// The offset of its next record.
    pub end: i64,
    /// The number of intact batches.
    pub batches: u64,
    /// Bytes of the intact batches.
    pub bytes: u64,
    /// Only its batches show that the log exists.
    pub is_orphan: bool,
}

/// Lost offsets of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// The log.
    pub log: LogId,
    /// First offset.
    pub first: i64,
    /// Last offset, included.
    pub last: i64,
}

/// The result of a survey.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Damage; empty if the store is intact.
    pub problems: Vec<Problem>,
    /// Logs in ID order.
    pub kept: Vec<Kept>,
    /// In log and offset order.
    pub lost: Vec<Lost>,
    /// The newest known entries of the catalog.
    pub catalog: Vec<(Vec<u8>, Vec<u8>)>,
    /// A torn write at the end of the journal, never confirmed: not damage.
    pub torn: Option<Torn>,
    /// Frames with unknown content are lost: catalog changes and the newest records of any log may have been among
    /// them.
    pub history_lost: bool,
}

/// Batches of one log by first offset.
type Batches = BTreeMap<i64, Batch>;

/// A batch found in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) segment: u64,
    pub(crate) kind: Kind,
    pub(crate) at: u32,
    pub(crate) len: u32,
    pub(crate) last: i64,
    pub(crate) max_timestamp: i64,
    /// No record is between this offset and the batch's first.
    pub(crate) from: i64,
    pub(crate) is_whole: bool,
}

/// A survey in progress.
pub(crate) struct Survey {
    pub(crate) dir: PathBuf,
    /// The state from the whole frames and the checkpoint.
    pub(crate) state: State,
    pub(crate) batches: HashMap<LogId, Batches>,
    pub(crate) orphans: HashSet<LogId>,
    since: Since,
    dropped: HashSet<LogId>,
    /// The highest end of each log in the indexes.
    ends: HashMap<LogId, i64>,
    problems: Vec<Problem>,
    torn: Option<Torn>,
    /// Whether operations or the checkpoint are missing.
    history_lost: bool,
}

/// Reads all of `dir` and reports what is intact and what is lost.
///
/// Refused while a process has the store open, or without a store.
pub fn survey(dir: &Path, progress: Progress<'_>) -> Result<Findings, StoreError> {
    let _lock = DirectoryLock::existing(dir)?;
    Ok(Survey::run(dir, progress)?.findings())
}

impl Survey {
    pub(crate) fn run(dir: &Path, progress: Progress<'_>) -> Result<Self, StoreError> {
        let journals = segment::list(dir, Kind::Journal.suffix())?;
        let compacts = segment::list(dir, Kind::Compact.suffix())?;
        if journals.is_empty() && compacts.is_empty() {
            let nothing = io::Error::new(io::ErrorKind::NotFound, "holds no data of a broker");
            return Err(StoreError::io(dir)(nothing));
        }
        // all of it would count as damage
        let is_elsewhere = |path: &PathBuf| matches!(File::open(path), Ok(File::Evicted(_)));
        let journal_paths = journals.iter().map(|id| Kind::Journal.path(dir, *id));
        let compact_paths = compacts.iter().map(|id| Kind::Compact.path(dir, *id));
        if let Some(path) = journal_paths.chain(compact_paths).find(is_elsewhere) {
            let what = "only the bucket has this segment (sharecore.bucket.cache.bytes). Restore the bucket to a \
                        new directory, and check that";
            return Err(StoreError::io(&path)(io::Error::new(
                io::ErrorKind::Unsupported,
                what,
            )));
        }
        let mut survey = Self {
            dir: dir.into(),
            state: State::new(dir.into(), 0, 0, usize::MAX),
            batches: HashMap::new(),
            orphans: HashSet::new(),
            since: Since {
                segment: 0,
                frame: 0,
            },
            dropped: HashSet::new(),
            ends: HashMap::new(),
            problems: Vec::new(),
            torn: None,
            history_lost: false,
        };
        survey.load_checkpoint(&journals)?;
        match format::check(dir) {
            Ok(_) => {}
            Err(StoreError::Damaged { path, at, what }) => survey.problem(path, at, what),
            Err(error) => return Err(error),
        }
        let total = survey.total(&journals, &compacts);
        let mut read = 0;
        let mut report = |bytes: u64| {
            read += bytes;
            progress(read, total);
        };
        for id in &compacts {
            report(survey.walk_compact(*id)?);
        }
        survey.walk_journals(&journals, &mut report)?;
        survey.miss_segments(&journals, &compacts);
        survey.hold_against_opening()?;
        survey.settle();
        Ok(survey)
    }

    fn load_checkpoint(&mut self, journals: &[u64]) -> Result<(), StoreError> {
        match checkpoint::load(&self.dir, &mut self.state) {
            Ok(Some(since)) => self.since = since,
            // a store that never filled a segment has no checkpoint; one that did has lost its first segment
            Ok(None) => self.history_lost = journals.first() != Some(&1),
            Err(StoreError::Damaged { path, at, what }) => {
                self.state = State::new(self.dir.clone(), 0, 0, usize::MAX);
                self.history_lost = true;
                self.problem(path, at, what);
            }
            Err(error) => return Err(error),
        }
        if self.history_lost && self.problems.is_empty() {
            let first = journals.first().map_or(1, |id| *id);
            let path = Kind::Journal.path(&self.dir, first);
            self.problem(
                path,
                0,
                "everything before this segment is missing, and there is no checkpoint".into(),
            );
        }
        Ok(())
    }

    fn total(&self, journals: &[u64], compacts: &[u64]) -> u64 {
        let journals = journals.iter().map(|id| Kind::Journal.path(&self.dir, *id));
        let compacts = compacts.iter().map(|id| Kind::Compact.path(&self.dir, *id));
        let sizes = journals
            .chain(compacts)
            .filter_map(|path| fs::metadata(path).ok());
        sizes.map(|metadata| metadata.len()).sum()
    }

    fn problem(&mut self, path: PathBuf, at: u64, what: String) {
        self.problems.push(Problem { path, at, what });
    }

    /// Adds the reason for which a start would refuse the directory, if nothing else was found: both must agree.
    fn hold_against_opening(&mut self) -> Result<(), StoreError> {
        if !self.problems.is_empty() {
            return Ok(());
        }
        let mut state = State::new(self.dir.clone(), 0, 0, usize::MAX);
        let looked = recover::look(&self.dir, &mut state);
        self.torn = state.torn;
        match looked {
            Err(StoreError::Damaged { path, at, what }) => {
                self.history_lost = true;
                self.problem(path, at, what);
                Ok(())
            }
            // a start creates the first segment if it is missing
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(())
            }
            other => other,
        }
    }

    /// Reports segments that the store needs and that are missing.
    fn miss_segments(&mut self, journals: &[u64], compacts: &[u64]) {
        let missing: Vec<PathBuf> = self
            .state
            .segments
            .iter()
            .filter(|(id, segment)| match segment.kind {
                Kind::Journal => !journals.contains(id),
                Kind::Compact => !compacts.contains(id),
            })
            .map(|(id, _)| self.state.segments.path(id))
            .collect();
        for path in missing {
            self.problem(path, 0, "the segment is missing".into());
        }
    }

    /// Keeps what belongs to the store of everything found; the rest was deleted, dropped or replaced.
    fn settle(&mut self) {
        let Self {
            state,
            batches,
            orphans,
            dropped,
            ends,
            history_lost,
            since,
            ..
        } = self;
        batches.retain(|id, found| {
            if !*history_lost {
                // a crash left replaced segments
                found.retain(|_, batch| state.segments.contains(batch.segment));
            }
            let known = state.logs.contains_key(id);
            // a log unknown to the checkpoint was dropped before it, or created after it
            let is_newer = |batch: &Batch| {
                let is_behind = batch.kind == Kind::Journal && batch.segment >= since.segment;
                is_behind || since.segment == 0
            };
            let may_be = *history_lost && !dropped.contains(id) && found.values().any(is_newer);
            if !known && !may_be {
                return false;
            }
            if !known {
                orphans.insert(*id);
            }
            let log = state.logs.entry(*id).or_default();
            if !known {
                log.start = found.first_key_value().map_or(0, |(base, _)| *base);
            }
            let cleaned = log.cleaned;
            found.retain(|base, batch| {
                batch.last >= log.start && !cleaned.replaced(batch.segment, *base)
            });
            true
        });
        for (id, log) in &mut state.logs {
            let found = batches.get(id).and_then(|found| found.last_key_value());
            let end = found.map_or(log.start, |(_, batch)| batch.last + 1);
            let durable = ends.get(id).copied().unwrap_or(0);
            log.durable_end = log.durable_end.max(end).max(durable);
            log.end = log.durable_end;
            state.next_log = state.next_log.max(id + 1);
        }
    }

    /// The intact batches of a log, in order.
    pub(crate) fn whole(&self, log: LogId) -> impl Iterator<Item = (i64, &Batch)> {
        let found = self.batches.get(&log).into_iter().flatten();
        found
            .filter(|(_, batch)| batch.is_whole)
            .map(|(base, batch)| (*base, batch))
    }

    pub(crate) fn findings(&self) -> Findings {
        let mut ids: Vec<LogId> = self.state.logs.keys().copied().collect();
        ids.sort_unstable();
        let mut findings = Findings {
            problems: self.problems.clone(),
            catalog: self.state.catalog.clone().into_iter().collect(),
            torn: self.torn.clone(),
            history_lost: self.history_lost,
            ..Findings::default()
        };
        for id in ids {
            let log = &self.state.logs[&id];
            let (batches, bytes) = self.whole(id).fold((0, 0), |(count, bytes), (_, batch)| {
                (count + 1, bytes + u64::from(batch.len))
            });
            findings.kept.push(Kept {
                log: id,
                start: log.start,
                end: log.durable_end,
                batches,
                bytes,
                is_orphan: self.orphans.contains(&id),
            });
            if findings.problems.is_empty() {
                continue;
            }
            let empty = Batches::new();
            let found = self.batches.get(&id).unwrap_or(&empty);
            let lost = batches::lost(found, holes_end(log), log.start, log.durable_end);
            let lost = lost.into_iter().map(|(first, last)| Lost {
                log: id,
                first,
                last,
            });
            findings.lost.extend(lost);
        }
        debug_assert!(
            !findings.problems.is_empty() || findings.lost.is_empty(),
            "records are lost for no reason"
        );
        findings
    }
}

/// The offset below which compaction may have removed records.
fn holes_end(log: &Log) -> i64 {
    log.cleaned.covered
}
