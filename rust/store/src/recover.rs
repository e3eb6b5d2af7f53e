//! Opening a store: replays the journal up to the last whole frame.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    checkpoint::{self, Since},
    error::StoreError,
    files::{self, File},
    format, index,
    journal::Journal,
    log::Extent,
    maintain::Seal,
    options::{Durability, Options},
    replay::{Replay, holds_frame},
    segment::{self, Kind, SEGMENT_HEADER},
    state::State,
    store::Store,
    synced::{Mark, MarkWriter},
};

/// How a directory is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Owned by this process, for writing.
    Own,
    /// Read-only; another process may be writing.
    Look,
}

/// The end of the journal: its newest segment, if any, and the end of the last whole frame.
struct End {
    since: Since,
    last: Option<(u64, u64)>,
    frame: u64,
    /// A newest file that a crash left without a header.
    headless: Option<PathBuf>,
    torn: Option<Torn>,
}

/// A truncated write at the end of the journal, which was never confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub path: PathBuf,
    /// Its position.
    pub at: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Reads everything into `state`; the journal continues after the last whole frame. A refused directory is not changed:
/// everything is read before anything is written. Also returns files that no start needs: they are removed, unless a
/// copy in a bucket may still need them.
pub(crate) fn open(
    dir: &Path,
    options: &Options,
    state: &mut State,
) -> Result<(Journal, Vec<(u64, PathBuf)>), StoreError> {
    let sync = options.durability == Durability::Fsync;
    let is_to_be_marked = format::check(dir)?;
    let End {
        since,
        last,
        frame,
        headless,
        torn,
    } = replay(dir, state, Access::Own)?;
    reach(state)?;
    state.torn = torn;
    if let Some(path) = headless {
        files::remove(&path).map_err(StoreError::io(&path))?;
    }
    // before anything is written in this format
    if is_to_be_marked {
        format::write(dir)?;
    }
    let (segment, position) = if let Some(found) = last {
        found
    } else {
        let file = segment::create(dir, since.segment, frame, sync)?;
        state
            .segments
            .add(since.segment, Kind::Journal, Some(Arc::new(file)));
        (since.segment, SEGMENT_HEADER)
    };
    let file = state.segments.file(segment).map_err(StoreError::io(dir))?;
    // bytes after it are cut off
    assert!(
        position >= SEGMENT_HEADER && frame >= since.frame,
        "the journal goes on before its beginning"
    );
    file.set_len(position).map_err(StoreError::io(dir))?;
    let leftovers = leftovers(dir, state)?;
    if options.bucket.is_none() {
        for (_, path) in &leftovers {
            files::remove(path).map_err(StoreError::io(path))?;
        }
    }
    let journal = Journal {
        dir: dir.into(),
        segment,
        file,
        position,
        next_frame: frame,
        sync,
        mark: MarkWriter::new(dir),
        suspect: false,
        segment_bytes: options.segment_bytes,
        ahead_bytes: options.ahead_bytes,
        ahead: position,
        ops: 0,
    };
    Ok((journal, leftovers))
}

/// Reads everything into `state` without changing a file.
///
/// The owner of the directory may replace files meanwhile: if a file is missing or inconsistent, a retry may succeed.
pub(crate) fn look(dir: &Path, state: &mut State) -> Result<(), StoreError> {
    format::check(dir)?;
    let end = replay(dir, state, Access::Look)?;
    state.torn = end.torn;
    if end.last.is_none() && end.frame == 1 {
        let nothing = io::Error::new(io::ErrorKind::NotFound, "holds no data of a broker");
        return Err(StoreError::io(dir)(nothing));
    }
    reach(state)
}

fn replay(dir: &Path, state: &mut State, access: Access) -> Result<End, StoreError> {
    // before the journal, which another process may be writing
    let mark = Mark::read(dir);
    let checkpoint = checkpoint::load(dir, state)?;
    let since = checkpoint.unwrap_or(Since {
        segment: 1,
        frame: 1,
    });
    let (found, headless) = journals(dir, since)?;
    if checkpoint.is_some() && found.is_empty() {
        let path = Kind::Journal.path(dir, since.segment);
        return Err(missing(&path));
    }
    let mut frame = since.frame;
    let mut last = None;
    let mut torn = None;
    for (i, (id, first)) in found.iter().copied().enumerate() {
        let path = Kind::Journal.path(dir, id);
        if first != frame || (i == 0 && id != since.segment) {
            let what = format!(
                "the journal should continue with frame {frame} of segment {}",
                since.segment
            );
            return Err(StoreError::damaged(path, 0, what));
        }
        if let Some((full, position)) = last.filter(|_| access == Access::Own) {
            seal_later(state, full, position, Since { segment: id, frame });
        }
        let access = if access == Access::Own {
            files::Access::Write
        } else {
            files::Access::Read
        };
        let file = File::open_for(&path, access).map_err(StoreError::io(&path))?;
        state.segments.add(id, Kind::Journal, Some(Arc::new(file)));
        let next = found.get(i + 1).map(|(_, first)| *first);
        let ended = Replay {
            path: &path,
            segment: id,
            state,
        }
        .run(frame, next)?;
        frame = ended.frame;
        last = Some((id, ended.at));
        torn = (ended.torn > 0).then_some(Torn {
            path,
            at: ended.at,
            bytes: ended.torn,
        });
    }
    if let Some(mark) = mark.filter(|mark| mark.frame > frame) {
        return Err(confirmed(dir, mark, frame, last));
    }
    for log in state.logs.values_mut() {
        log.end = log.durable_end;
    }
    Ok(End {
        since,
        last,
        frame,
        headless,
        torn,
    })
}

/// The error for a directory that ends before the synced position.
fn confirmed(dir: &Path, mark: Mark, frame: u64, last: Option<(u64, u64)>) -> StoreError {
    let at = last.filter(|(segment, _)| *segment == mark.segment);
    let at = at.map_or(segment::SEGMENT_HEADER, |(_, position)| position);
    let what = format!(
        "frames {frame} to {} were confirmed, and are broken or missing: {} bytes",
        mark.frame - 1,
        mark.position.saturating_sub(at)
    );
    StoreError::damaged(Kind::Journal.path(dir, mark.segment), at, what)
}

/// Journal segments with the numbers of their first frames, and a newest file without a header.
type Journals = (Vec<(u64, u64)>, Option<PathBuf>);

/// The journal segments that a checkpoint does not cover.
fn journals(dir: &Path, since: Since) -> Result<Journals, StoreError> {
    let mut headless = None;
    let mut ids = segment::list(dir, Kind::Journal.suffix())?;
    ids.retain(|id| *id >= since.segment);
    let mut found = Vec::with_capacity(ids.len());
    for id in &ids {
        let path = Kind::Journal.path(dir, *id);
        match segment::first_frame(&path, *id)? {
            Some(first) => found.push((*id, first)),
            // a crash between creating the newest file and writing its header
            None if Some(id) == ids.last() && !holds_frame(&path)? => headless = Some(path),
            None => {
                return Err(StoreError::damaged(
                    path,
                    0,
                    "the segment's header is broken",
                ));
            }
        }
    }
    Ok((found, headless))
}

/// Queues a segment that a crash left full but without an index.
fn seal_later(state: &mut State, segment: u64, position: u64, since: Since) {
    let checkpoint = Arc::new(checkpoint::encode(state, None, since));
    state.seals.push_back(Seal {
        segment,
        position,
        next: since.segment,
        checkpoint,
        indexed: None,
    });
}

/// The error for a missing segment, with advice that the system's error lacks.
fn missing(path: &Path) -> StoreError {
    StoreError::damaged(path, 0, "the segment is missing")
}

/// Loads the logs' batches in sealed segments.
fn reach(state: &mut State) -> Result<(), StoreError> {
    let sealed: Vec<u64> = state
        .segments
        .iter()
        .filter(|(_, s)| s.sealed)
        .map(|(id, _)| id)
        .collect();
    let mut found = Vec::new();
    for id in sealed {
        let path = state.segments.path(id);
        let file = state
            .segments
            .file(id)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => missing(&path),
                _ => StoreError::io(&path)(error),
            })?;
        let blocks = index::read(&path, id, &file)?;
        if let File::Evicted(file) = &*file {
            state.segments.evicted(id, file.kept_bytes());
        }
        state
            .segments
            .holds(id, blocks.iter().map(|block| block.bytes).sum());
        found.extend(blocks.into_iter().map(|block| (id, block)));
    }
    found.sort_by_key(|(_, block)| (block.log, std::cmp::Reverse(block.first)));
    for (id, block) in found {
        let Some(log) = state.logs.get_mut(&block.log) else {
            continue;
        };
        if block.last >= log.start && !log.cleaned.replaced(id, block.first) {
            // before what was replayed, except in a restored directory
            let place = log.extents.partition_point(|it| it.first < block.first);
            log.extents.insert(place, Extent::stored(id, &block));
            state.segments.reached(id, block.bytes);
        }
    }
    Ok(())
}

impl Store {
    /// A torn write found and dropped when the store was opened.
    pub fn torn(&self) -> Option<Torn> {
        self.shared.lock().torn.clone()
    }
}

/// Files of a rewrite or checkpoint interrupted by a crash, and replaced segments.
fn leftovers(dir: &Path, state: &State) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let mut found = Vec::new();
    for kind in [Kind::Journal, Kind::Compact] {
        let ids = segment::list(dir, kind.suffix())?.into_iter();
        let waits = |id: u64| state.seals.iter().any(|seal| seal.segment == id);
        let useless = ids.filter(|id| !state.segments.contains(*id) && !waits(*id));
        found.extend(useless.map(|id| (id, kind.path(dir, id))));
    }
    Ok(found)
}
