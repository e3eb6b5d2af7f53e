//! The segment that is being written, and the move to the next one.

use std::{
    io::{self, IoSlice, Seek, SeekFrom, Write},
    path::PathBuf,
    sync::Arc,
};

use crate::{
    fault::{Fault, FaultPoint},
    files::File,
    frame::{FrameWriter, Op, SYNCED},
    segment,
};

/// Where a frame's operations were written.
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
    /// After a failed write or sync the file is not trusted any more.
    pub(crate) suspect: bool,
    pub(crate) segment_bytes: u64,
    /// Operations in the segment: the index of what is being written lies in memory.
    pub(crate) ops: usize,
}

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
        let file = segment::create(&self.dir, id, self.next_frame, self.sync).map_err(into_io)?;
        self.segment = id;
        self.file = Arc::new(file);
        self.position = segment::SEGMENT_HEADER;
        self.suspect = false;
        self.ops = 0;
        Ok(())
    }

    /// Writes one frame and syncs it; after an error none of it counts.
    pub(crate) fn write(&mut self, ops: &[Op<'_>], fault: &Fault) -> io::Result<Written> {
        let mut frame = FrameWriter::new();
        let base = self.position;
        let positions = ops
            .iter()
            .map(|op| (base as usize + frame.push(op)) as u32)
            .collect();
        let size = frame.size() as u64;
        let mut slices = frame.finish(self.next_frame, if self.sync { SYNCED } else { 0 });
        if let Err(error) = self.write_and_sync(&mut slices, fault) {
            self.suspect = true;
            // best effort: the successor's first frame number makes this frame void in any case
            let _ = self.file.set_len(base);
            return Err(error);
        }
        self.position += size;
        self.next_frame += 1;
        self.ops += ops.len();
        Ok(Written {
            segment: self.segment,
            positions,
        })
    }

    fn write_and_sync(&mut self, slices: &mut [IoSlice<'_>], fault: &Fault) -> io::Result<()> {
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.position))?;
        if let Err(error) = fault.at(FaultPoint::Write) {
            if let Some(first) = slices.first() {
                file.write_all(&first[..first.len() / 2])?;
            }
            return Err(error);
        }
        write_all_vectored(file, slices)?;
        if self.sync {
            fault.at(FaultPoint::Sync)?;
            file.sync_data()?;
        }
        Ok(())
    }
}

fn write_all_vectored(mut file: &File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut slices, n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn into_io(error: crate::StoreError) -> io::Error {
    match error {
        crate::StoreError::Io { path, source } => {
            io::Error::new(source.kind(), format!("{}: {source}", path.display()))
        }
        other => io::Error::other(other.to_string()),
    }
}
