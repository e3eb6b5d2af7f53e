//! Replays a journal segment, frame by frame.

use std::{
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use crate::{
    batch,
    entries::Entry,
    error::StoreError,
    files::{self, File},
    frame::{FRAME_HEADER, FRAME_MAGIC, Frame, Op, body_len},
    segment::{Kind, SEGMENT_HEADER},
    state::State,
    store::Change,
};

/// A segment being replayed.
pub(crate) struct Replay<'a> {
    pub(crate) path: &'a Path,
    pub(crate) segment: u64,
    pub(crate) state: &'a mut State,
}

/// The end of a segment's frames.
pub(crate) struct Ended {
    pub(crate) at: u64,
    /// The number after the last frame.
    pub(crate) frame: u64,
    /// Bytes after it that belong to a truncated write.
    pub(crate) torn: u64,
}

impl Replay<'_> {
    /// Applies the frames from number `frame`; returns their end.
    ///
    /// `next` is the first frame of the following segment. A truncated frame at the end of the last segment is a torn
    /// write, which was never confirmed; any other incomplete frame is damage.
    pub(crate) fn run(&mut self, mut frame: u64, next: Option<u64>) -> Result<Ended, StoreError> {
        let file = File::open(self.path).map_err(StoreError::io(self.path))?;
        let size = file.len().map_err(StoreError::io(self.path))?;
        let mut input = BufReader::with_capacity(256 << 10, file);
        input
            .seek(SeekFrom::Start(SEGMENT_HEADER))
            .map_err(StoreError::io(self.path))?;
        let mut bytes = Vec::new();
        let mut at = SEGMENT_HEADER;
        while next != Some(frame) && read_frame(&mut input, size - at, &mut bytes) {
            let Some(found) = Frame::read(&bytes).filter(|f| f.number == frame) else {
                break;
            };
            for op in found.ops() {
                let applied = op.and_then(|(op, batch_at)| self.apply(&op, at + batch_at as u64));
                applied.ok_or_else(|| {
                    self.damaged(at, "a frame holds an operation that cannot be read")
                })?;
            }
            at += found.size as u64;
            frame += 1;
            debug_assert!(at <= size, "a frame beyond the end of its file");
        }
        if let Some(next) = next.filter(|next| *next != frame) {
            return Err(self.damaged(at, &format!("frames {frame} to {} are missing", next - 1)));
        }
        let mut torn = 0;
        if next.is_none() {
            let behind = self.behind(at, size)?;
            if let Some(later) = synced_frame(&behind, frame) {
                return Err(self.damaged(
                    at,
                    &format!("frame {frame} is broken, but frame {later} is whole"),
                ));
            }
            // zeros are written ahead of frames
            let last = behind.iter().rposition(|byte| *byte != 0);
            torn = last.map_or(0, |last| last as u64 + 1);
        }
        Ok(Ended { at, frame, torn })
    }

    fn damaged(&self, at: u64, what: &str) -> StoreError {
        StoreError::damaged(self.path, at, what)
    }

    /// The bytes from `end` to `size`, without later appends of another process.
    fn behind(&self, end: u64, size: u64) -> Result<Vec<u8>, StoreError> {
        let mut file = File::open(self.path).map_err(StoreError::io(self.path))?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(end))
            .map_err(StoreError::io(self.path))?;
        file.take(size - end)
            .read_to_end(&mut bytes)
            .map_err(StoreError::io(self.path))?;
        Ok(bytes)
    }

    pub(crate) fn apply(&mut self, op: &Op<'_>, at: u64) -> Option<()> {
        let state = &mut *self.state;
        match op {
            Op::Append { log, now_ms, batch } => {
                let header = batch::read(batch)?;
                let Some(log) = state.logs.get_mut(log) else {
                    return Some(());
                };
                log.add(self.segment, Entry::new(&header, u32::try_from(at).ok()?));
                let is_first = log.producers.replay(&header, batch, *now_ms);
                log.producers.committed(log.durable_end);
                if is_first {
                    state.producer_added();
                }
                state.segments.wrote(self.segment, header.size as u64);
            }
            Op::LogStart { log, offset } => state.move_start(*log, *offset),
            Op::Put { key, value } => state.apply(Change::Put(key.to_vec(), value.to_vec())),
            Op::Delete { key } => state.apply(Change::Delete(key.to_vec())),
            Op::CreateLog { log } => state.apply(Change::CreateLog(*log)),
            Op::DropLog { log } => state.apply(Change::DropLog(*log)),
            Op::Clean(clean) => {
                for id in &clean.added {
                    state.segments.restore(*id, Kind::Compact, 0);
                }
                if let Some(log) = state.logs.get_mut(&clean.log) {
                    // in a restored directory, compacted frames may have been replayed
                    for extent in log.forget_covered(clean.progress.covered) {
                        state.segments.freed(extent.segment, extent.bytes);
                    }
                    log.cleaned = clean.progress;
                    log.producers.forget_vanished(&clean.vanished);
                }
            }
            Op::Segments { added, removed } => {
                for id in removed {
                    // in a restored directory, a removed segment may have been replayed
                    if state.segments.contains(*id) && !state.segments.is_sealed(*id) {
                        for log in state.logs.values_mut() {
                            log.extents.retain(|extent| extent.segment != *id);
                        }
                    }
                    state.segments.remove(*id);
                }
                for id in added {
                    state.segments.restore(*id, Kind::Compact, 0);
                }
            }
        }
        Some(())
    }
}

/// A whole frame after the valid ones that was written after everything before it was synced: if there is one, the end
/// is not a torn write.
fn synced_frame(behind: &[u8], expected: u64) -> Option<u64> {
    let mut from = 1;
    while let Some(found) = behind
        .get(from..)
        .and_then(|rest| rest.windows(4).position(|w| w == FRAME_MAGIC))
    {
        from += found;
        if let Some(frame) =
            Frame::read(&behind[from..]).filter(|f| f.synced && f.number > expected)
        {
            return Some(frame.number);
        }
        from += 1;
    }
    None
}

/// Whether the file contains a whole frame.
pub(crate) fn holds_frame(path: &Path) -> Result<bool, StoreError> {
    let bytes = files::read(path).map_err(StoreError::io(path))?;
    let mut places = bytes.windows(4).enumerate();
    Ok(places.any(|(at, window)| window == FRAME_MAGIC && Frame::read(&bytes[at..]).is_some()))
}

/// Reads a possible frame into `bytes`; false if it exceeds `left` bytes.
fn read_frame(input: &mut impl Read, left: u64, bytes: &mut Vec<u8>) -> bool {
    bytes.resize(FRAME_HEADER, 0);
    if left < FRAME_HEADER as u64 || input.read_exact(bytes).is_err() {
        return false;
    }
    let Some(body) = body_len(bytes).filter(|body| (FRAME_HEADER + body) as u64 <= left) else {
        return false;
    };
    bytes.resize(FRAME_HEADER + body, 0);
    input.read_exact(&mut bytes[FRAME_HEADER..]).is_ok()
}
