//! Reading committed frames from the segment files, to ship them.

use std::{io, path::Path};

use sharecore_bucket::{Frames, HEADER};

use crate::{
    error::StoreError,
    files::File,
    frame::{FRAME_HEADER, Frame, Op, body_len},
    segment::{self, Kind, SEGMENT_HEADER},
};

/// A position in the journal's files, and the number of the frame there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cursor {
    pub(crate) segment: u64,
    pub(crate) at: u64,
    pub(crate) frame: u64,
}

/// Frames read.
pub(super) struct Cut {
    /// Room for a header, and the frames.
    pub(super) object: Vec<u8>,
    pub(super) frames: Frames,
    /// The position of the next frame.
    pub(super) end: Cursor,
    /// The segments that the frames add, with the frame numbers.
    pub(super) added: Vec<(u64, u64)>,
    /// The segment that the next frame adds, which must be uploaded first.
    pub(super) needs: Option<u64>,
}

/// Return the following segment and the number of its first frame.
pub(super) fn following(dir: &Path, segment: u64) -> Result<Option<(u64, u64)>, StoreError> {
    let ids = segment::list(dir, Kind::Journal.suffix())?;
    let Some(id) = ids.into_iter().find(|id| *id > segment) else {
        return Ok(None);
    };
    let path = Kind::Journal.path(dir, id);
    Ok(segment::first_frame(&path, id)?.map(|first| (id, first)))
}

/// Return the segments that a frame adds.
pub(super) fn added<'a>(frame: &Frame<'a>) -> impl Iterator<Item = u64> + use<'a> {
    frame.ops().flatten().flat_map(|(op, _)| match op {
        Op::Segments { added, .. } => added,
        Op::Clean(clean) => clean.added,
        _ => Vec::new(),
    })
}

/// Read whole frames from a cursor, about `bytes_max` bytes and at least one, up to frame `until` of the same segment.
pub(super) fn read(
    dir: &Path,
    from: Cursor,
    until: u64,
    bytes_max: usize,
    is_there: impl Fn(u64) -> bool,
) -> Result<Cut, StoreError> {
    let path = Kind::Journal.path(dir, from.segment);
    let file = File::open(&path).map_err(StoreError::io(&path))?;
    let mut cut = Cut {
        object: vec![0; HEADER],
        frames: Frames {
            segment: from.segment,
            at: from.at,
            first: from.frame,
            count: 0,
        },
        end: from,
        added: Vec::new(),
        needs: None,
    };
    while cut.end.frame < until {
        let mut header = [0; FRAME_HEADER];
        let read = file.read_exact_at(&mut header, cut.end.at);
        read.map_err(StoreError::io(&path))?;
        let damaged = |what| StoreError::damaged(path.clone(), cut.end.at, what);
        let size = body_len(&header).ok_or_else(|| damaged("a committed frame is missing"))?;
        let size = FRAME_HEADER + size;
        let begin = cut.object.len();
        if cut.frames.count > 0 && begin + size > HEADER + bytes_max {
            break;
        }
        cut.object.resize(begin + size, 0);
        let read = file.read_exact_at(&mut cut.object[begin..], cut.end.at);
        read.map_err(StoreError::io(&path))?;
        let frame = Frame::read(&cut.object[begin..]).filter(|it| it.number == cut.end.frame);
        let frame = frame.ok_or_else(|| damaged("a committed frame is damaged"))?;
        let ids: Vec<u64> = added(&frame).collect();
        let needs = ids.iter().copied().find(|id| !is_there(*id));
        if let Some(id) = needs {
            cut.needs = Some(id);
            cut.object.truncate(begin);
            break;
        }
        let number = cut.end.frame;
        cut.added.extend(ids.into_iter().map(|id| (id, number)));
        cut.end.at += size as u64;
        cut.end.frame += 1;
        cut.frames.count += 1;
    }
    Ok(cut)
}

/// Return the position of a frame, and the bytes of frames from it to the tail; None if it or a later one is not in a
/// file any more.
pub(super) fn locate(
    dir: &Path,
    frame: u64,
    tail: Cursor,
) -> Result<Option<(Cursor, u64)>, StoreError> {
    if frame == tail.frame {
        return Ok(Some((tail, 0)));
    }
    let mut firsts = Vec::new();
    for id in segment::list(dir, Kind::Journal.suffix())? {
        if id <= tail.segment
            && let Some(first) = segment::first_frame(&Kind::Journal.path(dir, id), id)?
        {
            firsts.push((id, first));
        }
    }
    let Some(begin) = firsts.iter().rposition(|(_, first)| *first <= frame) else {
        return Ok(None);
    };
    let (mut found, mut bytes) = (None, 0);
    for (n, (id, first)) in firsts.iter().enumerate().skip(begin) {
        let until = firsts.get(n + 1).map_or(tail.frame, |(_, next)| *next);
        let mut at = Cursor {
            segment: *id,
            at: SEGMENT_HEADER,
            frame: *first,
        };
        let path = Kind::Journal.path(dir, *id);
        let file = File::open(&path).map_err(StoreError::io(&path))?;
        while at.frame < until {
            if at.frame == frame {
                found = Some(at);
            }
            let Some(size) = size_at(&file, at).map_err(StoreError::io(&path))? else {
                return Ok(None);
            };
            bytes += if found.is_some() { size } else { 0 };
            at.at += size;
            at.frame += 1;
        }
    }
    Ok(found.map(|found| (found, bytes)))
}

/// The size of the frame at a position; None if another frame is there, or none.
fn size_at(file: &File, at: Cursor) -> io::Result<Option<u64>> {
    let mut header = [0; FRAME_HEADER];
    match file.read_exact_at(&mut header, at.at) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let number = u64::from_le_bytes(header[16..24].try_into().expect("eight bytes"));
    let body = body_len(&header).filter(|_| number == at.frame);
    Ok(body.map(|body| (FRAME_HEADER + body) as u64))
}

/// Whether the bytes of shipped frames match the local file; None if that is gone.
pub(super) fn is_same(
    dir: &Path,
    frames: &Frames,
    body: &[u8],
) -> Result<Option<bool>, StoreError> {
    let path = Kind::Journal.path(dir, frames.segment);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io(&path)(error)),
    };
    let mut local = vec![0; body.len()];
    match file.read_exact_at(&mut local, frames.at) {
        Ok(()) => Ok(Some(local == body)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(false)),
        Err(error) => Err(StoreError::io(&path)(error)),
    }
}
