//! The maintenance thread: indexes full segments and saves checkpoints, rewrites segments that are mostly garbage, and
//! removes unreachable ones.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use sharecore_bucket as bucket;

use crate::{
    LogId, checkpoint,
    entries::{Entries, Entry},
    error::StoreError,
    evicted,
    files::{self, Access, File},
    index::{self, Block, Index},
    log::Extent,
    pending::{Pending, Replace},
    segment::{self, Kind, SEGMENT_HEADER},
    state::State,
    store::{Shared, Store},
};

/// Delay before a retry after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// A full journal segment, with the state after it.
#[derive(Debug, Clone)]
pub(crate) struct Seal {
    pub(crate) segment: u64,
    /// The end of its frames.
    pub(crate) position: u64,
    /// The segment after it.
    pub(crate) next: u64,
    pub(crate) checkpoint: Arc<Vec<u8>>,
    /// Its index, once on disk.
    pub(crate) indexed: Option<Arc<Vec<Block>>>,
}

/// Which work a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// What needs only the local disk.
    Local,
    /// Evicting segments and rewriting evicted ones, which waits for the bucket.
    Evicted,
}

impl Work {
    pub(crate) fn thread(self) -> &'static str {
        match self {
            Self::Local => "store-maintain",
            Self::Evicted => "store-evict",
        }
    }
}

pub(crate) fn run(shared: &Shared, dir: &Path, segment_bytes: u64, work: Work) {
    loop {
        let mut state = shared.lock();
        let task = loop {
            if shared.is_leaving() {
                return;
            }
            if let Some(task) = next(&mut state, segment_bytes, work) {
                break task;
            }
            state = shared
                .maintenance
                .wait(state)
                .expect("no panic under the lock");
        };
        drop(state);
        let is_done = task.run(shared, dir);
        let state = shared.lock();
        if !is_done && !shared.is_leaving() {
            drop(
                shared
                    .maintenance
                    .wait_timeout(state, PAUSE)
                    .expect("no panic under the lock"),
            );
        }
    }
}

enum Task {
    Seal(Seal),
    Rewrite(Vec<u64>, Work),
    Evict(u64, bucket::Segment),
}

/// Does one step of pending work; returns whether there was any.
pub(crate) fn step(shared: &Shared, dir: &Path, segment_bytes: u64) -> bool {
    let task = {
        let mut state = shared.lock();
        let local = next(&mut state, segment_bytes, Work::Local);
        local.or_else(|| next(&mut state, segment_bytes, Work::Evicted))
    };
    task.is_some_and(|task| {
        task.run(shared, dir);
        true
    })
}

fn next(state: &mut State, segment_bytes: u64, work: Work) -> Option<Task> {
    let is_evicted = work == Work::Evicted;
    if is_evicted {
        if let Some((id, name)) = state.segments.surplus() {
            return Some(Task::Evict(id, name));
        }
    } else if let Some(seal) = state.seals.front() {
        return Some(Task::Seal(seal.clone()));
    }
    let victims = state.segments.victims(segment_bytes, is_evicted);
    (!victims.is_empty()).then(|| {
        state.segments.take(&victims, true);
        Task::Rewrite(victims, work)
    })
}

impl Task {
    /// Returns whether it succeeded.
    fn run(&self, shared: &Shared, dir: &Path) -> bool {
        let mut unreadable = None;
        let (result, work) = match self {
            Self::Seal(seal) => (seal_segment(shared, dir, seal), Work::Local),
            Self::Rewrite(victims, work) => (rewrite(shared, dir, victims, &mut unreadable), *work),
            Self::Evict(id, name) => (evicted::evict(shared, *id, *name), Work::Evicted),
        };
        let is_done = result.is_ok();
        let error = result.err().map(|error| error.to_string());
        let mut state = shared.lock();
        if let Self::Rewrite(victims, _) = self {
            state.segments.take(victims, false);
            shared.maintenance.notify_all();
        }
        if let (Work::Evicted, Some(evicted)) = (work, shared.evicted()) {
            if let Some(segment) = unreadable {
                state.segments.postpone(segment);
            }
            evicted.worked(error);
        } else {
            state.maintenance_failed += u64::from(error.is_some());
            state.maintenance_error = error;
        }
        is_done
    }
}

impl Store {
    /// Why the last attempt to seal or rewrite segments failed, if it did.
    pub fn maintenance_error(&self) -> Option<String> {
        self.shared.lock().maintenance_error.clone()
    }

    /// How often that failed since the store was opened.
    pub fn maintenance_failed(&self) -> u64 {
        self.shared.lock().maintenance_failed
    }
}

fn seal_segment(shared: &Shared, dir: &Path, seal: &Seal) -> Result<(), StoreError> {
    // a checkpoint that failed to sync may exist all the same: keep the index that it relies on
    let blocks = if let Some(blocks) = &seal.indexed {
        Arc::clone(blocks)
    } else {
        let blocks = Arc::new(write_index(shared, dir, seal)?);
        if let Some(front) = shared.lock().seals.front_mut() {
            front.indexed = Some(Arc::clone(&blocks));
        }
        blocks
    };
    checkpoint::save(dir, seal.next, &seal.checkpoint)?;
    if let Some(backup) = &shared.backup {
        backup.sealed(seal.segment, &seal.checkpoint);
    }
    let mut state = shared.lock();
    state.sealed(seal.segment, &blocks);
    let sealed = state.seals.pop_front();
    assert!(
        sealed.is_some_and(|sealed| sealed.segment == seal.segment),
        "a segment would never be sealed"
    );
    debug_assert!(state.segments.is_sealed(seal.segment) || !state.segments.contains(seal.segment));
    Ok(())
}

fn write_index(shared: &Shared, dir: &Path, seal: &Seal) -> Result<Vec<Block>, StoreError> {
    let extents = shared.lock().extents_in(&[seal.segment]);
    let path = Kind::Journal.path(dir, seal.segment);
    let write = || -> io::Result<Vec<Block>> {
        let file = File::open_for(&path, Access::Write)?;
        file.set_len(seal.position)?;
        let mut out = BufWriter::new(At {
            file: &file,
            position: seal.position,
        });
        let blocks = extents
            .iter()
            .filter_map(|(log, _, extent)| match &extent.index {
                Index::Memory(entries) => Some((*log, &**entries)),
                Index::Stored(_) => None,
            });
        let blocks = index::write(&mut out, seal.segment, seal.position, blocks)?;
        out.flush()?;
        file.sync_data()?;
        Ok(blocks)
    };
    write().map_err(StoreError::io(&path))
}

/// Writes at its own position, independent of other users of the file.
struct At<'a> {
    file: &'a File,
    position: u64,
}

impl Write for At<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(bytes, self.position)?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies the live batches of some segments to a new one, and removes them. On an error it names the `unreadable` one, if
/// that is the reason.
fn rewrite(
    shared: &Shared,
    dir: &Path,
    victims: &[u64],
    unreadable: &mut Option<u64>,
) -> Result<(), StoreError> {
    assert!(!victims.is_empty(), "an empty rewrite");
    let (id, sources) = {
        let mut state = shared.lock();
        debug_assert!(
            victims
                .iter()
                .all(|victim| state.segments.is_sealed(*victim)),
            "the active segment"
        );
        let extents = state.extents_in(victims);
        let mut sources = Vec::with_capacity(extents.len());
        for (log, start, extent) in extents {
            let file = state
                .segments
                .file(extent.segment)
                .map_err(StoreError::io(dir))?;
            sources.push(Source {
                log,
                start,
                extent,
                file,
            });
        }
        (state.segments.new_id(), sources)
    };
    let added = if sources.is_empty() {
        None
    } else {
        Some((id, copy(dir, id, &sources, unreadable)?))
    };
    let paths: Vec<_> = victims
        .iter()
        .map(|victim| shared.lock().segments.path(*victim))
        .collect();
    let sequence = {
        let replace = Replace {
            removed: victims.to_vec(),
            added,
        };
        shared.stage(shared.lock(), Pending::Replace(replace), false)
    };
    let removed = shared.wait(sequence, |state: &State| {
        !state.segments.contains(victims[0])
    });
    if !removed {
        let _ = files::remove(&Kind::Compact.path(dir, id));
        return Err(StoreError::io(dir)(io::Error::other(
            "replacing segments could not be written",
        )));
    }
    sync_journal(shared).map_err(StoreError::io(dir))?;
    for (victim, path) in victims.iter().zip(paths) {
        let removed = match &shared.backup {
            Some(backup) => backup.discard(*victim, &path),
            None => files::remove(&path),
        };
        removed.map_err(StoreError::io(&path))?;
    }
    Ok(())
}

/// Syncs the journal before files are removed: the frames that replace them must be durable first, which durability
/// `os` does not ensure.
fn sync_journal(shared: &Shared) -> io::Result<()> {
    let files = {
        let mut state = shared.lock();
        let unsealed: Vec<u64> = state
            .segments
            .iter()
            .filter(|(_, s)| !s.sealed)
            .map(|(id, _)| id)
            .collect();
        unsealed
            .into_iter()
            .map(|id| state.segments.file(id))
            .collect::<io::Result<Vec<_>>>()?
    };
    files.iter().try_for_each(|file| file.sync_data())
}

struct Source {
    log: LogId,
    start: i64,
    extent: Extent,
    file: Arc<File>,
}

fn copy(
    dir: &Path,
    id: u64,
    sources: &[Source],
    unreadable: &mut Option<u64>,
) -> Result<Vec<Block>, StoreError> {
    let path = Kind::Compact.path(dir, id);
    // two threads may rewrite segments
    let new = dir.join(format!("compact.{id:x}.new"));
    let mut write = || -> io::Result<Vec<Block>> {
        let file = File::create(&new)?;
        let mut out = BufWriter::with_capacity(256 << 10, &file);
        out.write_all(&segment::header(id, 0))?;
        let mut position = SEGMENT_HEADER;
        let mut copied: Vec<(LogId, Entries)> = Vec::with_capacity(sources.len());
        let mut batch = Vec::new();
        for source in sources {
            // live batches
            let entries = source
                .extent
                .index
                .entries(|| Ok(Arc::clone(&source.file)))?;
            for (place, entry) in entries.from(source.start).enumerate() {
                batch.resize(entry.len as usize, 0);
                let read = source.file.read_exact_at(&mut batch, u64::from(entry.at));
                read.inspect_err(|_| *unreadable = Some(source.extent.segment))?;
                out.write_all(&batch)?;
                let continues = place > 0
                    || copied.last().is_some_and(|(log, before)| {
                        *log == source.log && before.end() == Some(entry.base)
                    });
                if !continues {
                    copied.push((source.log, Entries::default()));
                }
                assert!(u32::try_from(position).is_ok(), "too large a segment");
                let at = position as u32;
                let (_, entries) = copied.last_mut().expect("one was pushed");
                debug_assert!(
                    entries.end().is_none_or(|end| end == entry.base),
                    "a block has no hole"
                );
                entries.push(&Entry { at, ..entry });
                position += u64::from(entry.len);
            }
        }
        let blocks = copied.iter().map(|(log, entries)| (*log, entries));
        let blocks = index::write(&mut out, id, position, blocks)?;
        out.flush()?;
        drop(out);
        file.sync_data()?;
        files::rename(&new, &path)?;
        Ok(blocks)
    };
    let blocks = write().map_err(StoreError::io(&path))?;
    segment::sync_dir(dir)?;
    Ok(blocks)
}
