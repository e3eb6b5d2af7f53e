//! The active segment, and moving to the next one.

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

/// The position of a written frame's operations.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) segment: u64,
    /// The position in the segment of each operation's batch; 0 without a batch.
    pub(crate) positions: Vec<u32>,
}

/// The write end of the journal; used by one thread at a time (`State::writer`).
pub(crate) struct Journal {
    pub(crate) dir: PathBuf,
    pub(crate) segment: u64,
    pub(crate) file: Arc<File>,
    /// End of the last valid frame.
    pub(crate) position: u64,
    pub(crate) next_frame: u64,
    pub(crate) sync: bool,
    /// Records how far was synced.
    pub(crate) mark: MarkWriter,
    /// After a failed write or sync the file is not trusted any more.
    pub(crate) suspect: bool,
    pub(crate) segment_bytes: u64,
    pub(crate) ahead_bytes: u64,
    /// The file has bytes up to here, which frames overwrite.
    pub(crate) ahead: u64,
    /// Operations in the segment, whose index is in memory.
    pub(crate) ops: usize,
}

/// For larger frames the file may grow.
const SMALL_FRAME_BYTES: u64 = 128 << 10;

/// A segment is full with this many operations, whatever their size.
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
        assert!(id > self.segment, "segments are consecutive");
        let file = segment::create(&self.dir, id, self.next_frame, self.sync).map_err(into_io)?;
        self.segment = id;
        self.file = Arc::new(file);
        self.position = segment::SEGMENT_HEADER;
        self.ahead = self.position;
        self.suspect = false;
        self.ops = 0;
        Ok(())
    }

    /// Writes and syncs one frame; after an error no part of it is valid.
    pub(crate) fn write(&mut self, ops: &[Op<'_>], fault: &Fault) -> io::Result<Written> {
        assert!(!self.suspect, "nothing may be written after a broken frame");
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
            "a position beyond an index's range"
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
            "a restart would find another frame"
        );
        if let Err(error) = self.write_and_sync(&mut slices, size, fault) {
            self.suspect = true;
            // best effort: the number of the next first frame invalidates this frame anyway
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

    /// Extends the file beyond `end` if need be; the sync of the preceding frame covers it.
    ///
    /// Syncing data inside a file is one write to the disk; if the file has grown, the file system also writes its own
    /// journal, which takes several times as long.
    fn write_ahead(&mut self, end: u64) {
        let to = (end + self.ahead_bytes).min(self.segment_bytes);
        if end <= self.ahead || end >= to {
            return;
        }
        debug_assert!(to <= self.segment_bytes, "the segment ends before");
        let zeros = vec![0; (to - end) as usize];
        // best effort: there may still be room for frames
        let _ = self.file.write_all_at(&mut [IoSlice::new(&zeros)], end);
        self.ahead = to;
    }

    /// Truncates the space written ahead; if that fails, the next start does it.
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
