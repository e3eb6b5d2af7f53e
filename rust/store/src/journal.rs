//! The segment that is being written, and the move to the next one.

use std::{
    io::{self, IoSlice},
    path::PathBuf,
    sync::Arc,
};

use crate::{
    fault::{Fault, FaultPoint},
    files::File,
    frame::{Frame, FrameWriter, Op, SYNCED},
    segment,
    synced::{Mark, MarkWriter},
};

/// Where a frame's operations were written.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) segment: u64,
    /// For each operation the position of its batch in the segment; 0 for operations without a batch.
    pub(crate) positions: Vec<u32>,
}

/// The writing end of the journal; owned by the thread that commits.
pub(crate) struct Journal {
    pub(crate) dir: PathBuf,
    pub(crate) segment: u64,
    pub(crate) file: Arc<File>,
    /// End of the last frame that counts.
    pub(crate) position: u64,
    pub(crate) next_frame: u64,
    pub(crate) sync: bool,
    /// Tells how far it was synced.
    pub(crate) mark: MarkWriter,
    /// After a failed write or sync the file is not trusted any more.
    pub(crate) suspect: bool,
    pub(crate) segment_bytes: u64,
    pub(crate) ahead_bytes: u64,
    /// Up to here the file holds bytes that frames are written over.
    pub(crate) ahead: u64,
    /// Operations in the segment: the index of what is being written lies in memory.
    pub(crate) ops: usize,
}

/// Larger frames are worth a file that grows.
const SMALL_FRAME_BYTES: u64 = 128 << 10;

/// This many operations fill a segment, whatever their size.
const OPS_MAX: usize = 128 << 10;

impl Journal {
    /// Whether the next frame belongs in a new segment.
    pub(crate) fn is_full(&self) -> bool {
        self.suspect || self.position >= self.segment_bytes || self.ops >= OPS_MAX
    }

    /// Whether nothing has been written to the segment.
    pub(crate) fn is_empty(&self) -> bool {
        self.position <= segment::SEGMENT_HEADER
    }

    /// Begins the next segment.
    pub(crate) fn rotate(&mut self, id: u64) -> io::Result<()> {
        assert!(id > self.segment, "segments follow each other");
        let file = segment::create(&self.dir, id, self.next_frame, self.sync).map_err(into_io)?;
        self.segment = id;
        self.file = Arc::new(file);
        self.position = segment::SEGMENT_HEADER;
        self.ahead = self.position;
        self.suspect = false;
        self.ops = 0;
        Ok(())
    }

    /// Writes one frame and syncs it; after an error none of it counts.
    pub(crate) fn write(&mut self, ops: &[Op<'_>], fault: &Fault) -> io::Result<Written> {
        assert!(!self.suspect, "nothing is written behind a broken frame");
        assert!(
            self.position >= segment::SEGMENT_HEADER,
            "a frame over the segment's header"
        );
        let mut frame = FrameWriter::new();
        let base = self.position;
        let positions = ops
            .iter()
            .map(|op| (base as usize + frame.push(op)) as u32)
            .collect();
        let size = frame.size() as u64;
        let mut slices = frame.finish(self.next_frame, if self.sync { SYNCED } else { 0 });
        assert!(
            u32::try_from(base + size).is_ok(),
            "a place that no index can tell"
        );
        debug_assert!(
            Frame::is_of(
                &slices
                    .iter()
                    .flat_map(|slice| slice.iter().copied())
                    .collect::<Vec<u8>>(),
                self.next_frame,
                ops
            ),
            "a start would find another frame"
        );
        if let Err(error) = self.write_and_sync(&mut slices, size, fault) {
            self.suspect = true;
            // best effort: the successor's first frame number makes this frame void in any case
            let _ = self.file.set_len(base);
            return Err(error);
        }
        self.position += size;
        self.next_frame += 1;
        self.ops += ops.len();
        if self.sync {
            self.mark.write(Mark {
                segment: self.segment,
                position: self.position,
                frame: self.next_frame,
            });
        }
        Ok(Written {
            segment: self.segment,
            positions,
        })
    }

    fn write_and_sync(
        &mut self,
        slices: &mut [IoSlice<'_>],
        size: u64,
        fault: &Fault,
    ) -> io::Result<()> {
        if let Err(error) = fault.at(FaultPoint::Write) {
            if let Some(first) = slices.first() {
                let half = IoSlice::new(&first[..first.len() / 2]);
                self.file.write_all_at(&mut [half], self.position)?;
            }
            return Err(error);
        }
        self.file.write_all_at(slices, self.position)?;
        if self.sync {
            if size <= SMALL_FRAME_BYTES {
                self.write_ahead(self.position + size);
            }
            fault.at(FaultPoint::Sync)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Sees to it that there are bytes behind `end`; the sync of the frame in front of them is theirs, too.
    ///
    /// To sync what lies within a file is one write to the disk; where the file has grown, the file system has a journal of its
    /// own to write, which takes several times as long.
    fn write_ahead(&mut self, end: u64) {
        let to = (end + self.ahead_bytes).min(self.segment_bytes);
        if end <= self.ahead || end >= to {
            return;
        }
        debug_assert!(to <= self.segment_bytes, "the segment ends before");
        let zeros = vec![0; (to - end) as usize];
        // best effort: where there is no room for these, there may be for frames
        let _ = self.file.write_all_at(&mut [IoSlice::new(&zeros)], end);
        self.ahead = to;
    }

    /// Gives back what was written ahead; where that fails, the next opening does it.
    pub(crate) fn finish(&self) {
        if self.ahead > self.position {
            let _ = self.file.set_len(self.position);
        }
    }
}

fn into_io(error: crate::StoreError) -> io::Error {
    match error {
        crate::StoreError::Io { path, source } => {
            io::Error::new(source.kind(), format!("{}: {source}", path.display()))
        }
        other => io::Error::other(other.to_string()),
    }
}
