//! Checks one file: the frames of a journal segment, the batches in an index.

use std::{fs, path::Path};

use super::{Batch, Survey};
use crate::{
    LogId, batch,
    disk::Source,
    entries::Entry,
    error::StoreError,
    files::File,
    frame::{FRAME_HEADER, FRAME_MAGIC, Frame, Op, body_len},
    index::{self, Block},
    replay::{Replay, holds_frame},
    segment::{self, Kind, SEGMENT_HEADER},
};

/// The content of a file.
struct Contents<'a> {
    path: &'a Path,
    segment: u64,
    kind: Kind,
    bytes: &'a [u8],
}

/// The expected frames of a segment.
struct Stretch {
    end: usize,
    first: u64,
    /// The first frame of the following segment.
    next: Option<u64>,
    must_reach_next: bool,
    must_reach_end: bool,
}

/// The readable part of a segment's index.
struct Listed {
    blocks: Vec<Block>,
    /// Where the index begins.
    at: usize,
}

impl Survey {
    /// Checks a segment of concatenated batches; returns its size.
    pub(super) fn walk_compact(&mut self, id: u64) -> Result<u64, StoreError> {
        let path = Kind::Compact.path(&self.dir, id);
        let bytes = fs::read(&path).map_err(StoreError::io(&path))?;
        let contents = Contents {
            path: &path,
            segment: id,
            kind: Kind::Compact,
            bytes: &bytes,
        };
        if segment::first_frame(&path, id)?.is_none() {
            self.problem(path.clone(), 0, "the segment's header is broken".into());
        }
        if let Some(listed) = self.index(&contents, true)? {
            self.hold_against(&contents, &listed.blocks)?;
        } else {
            // only the index says which log they belong to
            self.history_lost = true;
        }
        Ok(bytes.len() as u64)
    }

    /// Checks all journal segments, which form one history.
    pub(super) fn walk_journals(
        &mut self,
        ids: &[u64],
        report: &mut dyn FnMut(u64),
    ) -> Result<(), StoreError> {
        let mut firsts = Vec::with_capacity(ids.len());
        for id in ids {
            let path = Kind::Journal.path(&self.dir, *id);
            let first = segment::first_frame(&path, *id)?;
            let is_newest = Some(id) == ids.last();
            // a crash between creating the newest file and writing its header leaves no frame in it
            if first.is_none() && (!is_newest || holds_frame(&path)?) {
                self.problem(path, 0, "the segment's header is broken".into());
            }
            firsts.push(first);
        }
        let mut frame = firsts.first().copied().flatten().unwrap_or(1);
        let mut counts = false;
        for (i, id) in ids.iter().enumerate() {
            let next = firsts[i + 1..].iter().find_map(|first| *first);
            if !counts && *id >= self.since.segment {
                counts = true;
                frame = frame.max(self.since.frame);
            }
            let path = Kind::Journal.path(&self.dir, *id);
            let first = match firsts[i] {
                Some(first) => first,
                None => first_whole(&path)?.unwrap_or(frame),
            };
            if counts && first > frame {
                self.problem(
                    path,
                    0,
                    format!("frames {frame} to {} are missing before it", first - 1),
                );
                self.history_lost = true;
            }
            let is_newest = i + 1 == ids.len();
            let (end, size) = self.walk_journal(*id, first, next.filter(|_| !is_newest))?;
            frame = end;
            report(size);
        }
        if !counts {
            let path = Kind::Journal.path(&self.dir, self.since.segment);
            self.problem(path, 0, "the segment is missing".into());
            self.history_lost = true;
        }
        Ok(())
    }

    /// Checks a journal segment; returns the number after its last frame, and its size.
    fn walk_journal(
        &mut self,
        id: u64,
        first: u64,
        next: Option<u64>,
    ) -> Result<(u64, u64), StoreError> {
        let path = Kind::Journal.path(&self.dir, id);
        let bytes = fs::read(&path).map_err(StoreError::io(&path))?;
        let contents = Contents {
            path: &path,
            segment: id,
            kind: Kind::Journal,
            bytes: &bytes,
        };
        let sealed = self.state.segments.contains(id) || id < self.since.segment;
        if id >= self.since.segment {
            self.state.segments.add(id, Kind::Journal, None);
        }
        let listed = self.index(&contents, sealed && id < self.since.segment)?;
        let end = listed.as_ref().map_or(bytes.len(), |listed| listed.at);
        let stretch = Stretch {
            end,
            first,
            next,
            // some older segments were merged and removed, so the next one may not follow directly
            must_reach_next: id >= self.since.segment,
            must_reach_end: listed.is_some(),
        };
        let frame = self.walk_frames(&contents, &stretch);
        if let Some(listed) = &listed {
            self.hold_against(&contents, &listed.blocks)?;
        }
        Ok((frame, bytes.len() as u64))
    }

    /// Reads every whole frame; returns the number after the last.
    fn walk_frames(&mut self, contents: &Contents<'_>, stretch: &Stretch) -> u64 {
        let mut at = SEGMENT_HEADER as usize;
        let mut number = stretch.first;
        let end = stretch.end;
        while at < end && stretch.next.is_none_or(|next| number < next) {
            let bytes = &contents.bytes[at..end];
            if let Some(frame) = Frame::read(bytes).filter(|frame| frame.number == number) {
                self.take_frame(contents, at, &frame);
                at += frame.size;
                number += 1;
                continue;
            }
            let Some((to, found)) = resume(contents.bytes, at, stretch, number) else {
                break;
            };
            let what = if found - number == 1 {
                format!("frame {number} is broken")
            } else {
                format!("frames {number} to {} are broken", found - 1)
            };
            self.broken_frames(contents, at, what);
            (at, number) = (to, found);
        }
        match stretch.next {
            Some(next) if stretch.must_reach_next && number < next => {
                let what = format!("frames {number} to {} are broken or missing", next - 1);
                self.broken_frames(contents, at, what);
                next
            }
            _ if stretch.must_reach_end && at < end => {
                self.broken_frames(contents, at, format!("frame {number} is broken"));
                number
            }
            _ => number,
        }
    }

    fn broken_frames(&mut self, contents: &Contents<'_>, at: usize, what: String) {
        self.problem(contents.path.into(), at as u64, what);
        self.history_lost |= contents.segment >= self.since.segment;
    }

    fn take_frame(&mut self, contents: &Contents<'_>, at: usize, frame: &Frame<'_>) {
        let counts = contents.segment >= self.since.segment && frame.number >= self.since.frame;
        for op in frame.ops() {
            let Some((op, batch_at)) = op else {
                let what = format!(
                    "frame {} holds an operation that cannot be read",
                    frame.number
                );
                self.problem(contents.path.into(), at as u64, what);
                self.history_lost = true;
                return;
            };
            let place = at + batch_at;
            if let Op::Append { log, batch, .. } = &op
                && let Some(header) = batch::read(batch)
            {
                let entry = Entry::new(&header, place as u32);
                self.found(*log, contents, &entry, entry.base, true);
            }
            if let Op::DropLog { log } = &op {
                self.dropped.insert(*log);
            }
            if counts {
                let mut replay = Replay {
                    path: contents.path,
                    segment: contents.segment,
                    state: &mut self.state,
                };
                // an append to an otherwise unknown log is kept with the batches
                let _ = replay.apply(&op, place as u64);
            }
        }
    }

    fn found(
        &mut self,
        log: LogId,
        contents: &Contents<'_>,
        entry: &Entry,
        from: i64,
        is_whole: bool,
    ) {
        let batch = Batch {
            segment: contents.segment,
            kind: contents.kind,
            at: entry.at,
            len: entry.len,
            last: entry.last(),
            max_timestamp: entry.max_timestamp,
            from,
            is_whole,
        };
        let known = self
            .batches
            .entry(log)
            .or_default()
            .entry(entry.base)
            .or_insert(batch);
        // compaction rewrites a batch under its old offset: the newest counts
        let is_newer = batch.kind == Kind::Compact && batch.segment > known.segment;
        if !known.is_whole || (batch.is_whole && is_newer) {
            *known = batch;
        }
    }

    /// The index at the end of a segment; `None` if it is missing or unreadable.
    fn index(
        &mut self,
        contents: &Contents<'_>,
        expected: bool,
    ) -> Result<Option<Listed>, StoreError> {
        let file = File::open(contents.path).map_err(StoreError::io(contents.path))?;
        match index::read(contents.path, contents.segment, &file) {
            Ok(blocks) => {
                let at = index::begins(&blocks, contents.bytes);
                Ok(Some(Listed { blocks, at }))
            }
            Err(StoreError::Damaged { path, at, what }) => {
                if expected {
                    self.problem(path, at, what);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Compares the batches in an index with the file's content.
    fn hold_against(
        &mut self,
        contents: &Contents<'_>,
        blocks: &[Block],
    ) -> Result<(), StoreError> {
        let file = File::open(contents.path).map_err(StoreError::io(contents.path))?;
        for block in blocks {
            let end = self.ends.entry(block.log).or_default();
            *end = (*end).max(block.last + 1);
            let Ok(entries) = index::load(&file, block.stored, Source::Disk) else {
                let what = format!(
                    "the index of offsets {} to {} of log {} does not match its checksum",
                    block.first, block.last, block.log
                );
                self.problem(contents.path.into(), u64::from(block.stored.at), what);
                continue;
            };
            let mut from = block.first;
            for entry in entries.iter() {
                let entry = &entry;
                if contents.kind == Kind::Compact || !self.has(block.log, contents, entry) {
                    let state = condition(contents.bytes, entry);
                    let is_whole = state != Condition::Broken;
                    if state != Condition::Whole && contents.kind == Kind::Compact {
                        let what = format!(
                            "the batch at offset {} of log {} is broken{}",
                            entry.base,
                            block.log,
                            if is_whole {
                                ", but can be repaired"
                            } else {
                                ""
                            }
                        );
                        self.problem(contents.path.into(), u64::from(entry.at), what);
                    }
                    let from = if contents.kind == Kind::Compact {
                        from
                    } else {
                        entry.base
                    };
                    self.found(block.log, contents, entry, from, is_whole);
                }
                from = entry.last() + 1;
            }
        }
        Ok(())
    }

    fn has(&self, log: LogId, contents: &Contents<'_>, entry: &Entry) -> bool {
        let found = self
            .batches
            .get(&log)
            .and_then(|found| found.get(&entry.base));
        found.is_some_and(|batch| batch.segment == contents.segment && batch.is_whole)
    }
}

/// The number of the first frame, for a segment with a broken header.
fn first_whole(path: &Path) -> Result<Option<u64>, StoreError> {
    let bytes = fs::read(path).map_err(StoreError::io(path))?;
    let first = bytes.get(SEGMENT_HEADER as usize..).and_then(Frame::read);
    Ok(first.map(|frame| frame.number))
}

/// The state of a batch listed in an index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Whole,
    /// Wrong only in fields that its checksum does not cover and that are known: its offset, from the index, and the
    /// leader epoch, which is 0.
    Misplaced,
    Broken,
}

fn condition(bytes: &[u8], entry: &Entry) -> Condition {
    let batch = bytes.get(entry.at as usize..entry.at as usize + entry.len as usize);
    let Some((bytes, header)) = batch.and_then(|bytes| Some((bytes, batch::read(bytes)?))) else {
        return Condition::Broken;
    };
    let fits = header.size == bytes.len() && header.last_offset_delta == entry.last_delta as i32;
    if !fits || !batch::matches_checksum(bytes) {
        return Condition::Broken;
    }
    if header.base_offset == entry.base && batch::has_no_epoch(bytes) {
        Condition::Whole
    } else {
        Condition::Misplaced
    }
}

/// Where the history continues after a broken frame, and with which frame: after the broken one's length, or at the
/// next whole frame. In the newest segment a later frame counts only if it is marked as synced; otherwise the rest is a
/// torn write, which was never confirmed.
fn resume(bytes: &[u8], at: usize, stretch: &Stretch, number: u64) -> Option<(usize, u64)> {
    let &Stretch { end, next, .. } = stretch;
    let fits = |frame: &Frame<'_>| match next {
        Some(next) => frame.number > number && frame.number < next,
        None => frame.number > number && frame.synced,
    };
    let end_of = body_len(&bytes[at..end]).map(|body| at + FRAME_HEADER + body);
    if let Some(to) = end_of.filter(|to| *to <= end) {
        if to == end && (stretch.must_reach_end || next == Some(number + 1)) {
            return Some((to, number + 1));
        }
        if Frame::read(&bytes[to..end])
            .is_some_and(|frame| frame.number == number + 1 && fits(&frame))
        {
            return Some((to, number + 1));
        }
    }
    let mut from = at + 1;
    while let Some(found) = bytes
        .get(from..end)
        .and_then(|rest| rest.windows(4).position(|window| window == FRAME_MAGIC))
    {
        from += found;
        if let Some(frame) = Frame::read(&bytes[from..end]).filter(fits) {
            return Some((from, frame.number));
        }
        from += 1;
    }
    None
}
