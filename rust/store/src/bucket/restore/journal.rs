//! The files that a restored journal is written to.

use std::{io::IoSlice, path::Path};

use crate::{
    error::StoreError,
    files::{Access, File},
    segment::{self, Kind, SEGMENT_HEADER},
};

/// The journal segment being written.
pub(super) struct Journal<'a> {
    dir: &'a Path,
    id: u64,
    file: Option<File>,
    at: u64,
}

impl<'a> Journal<'a> {
    pub(super) fn new(dir: &'a Path, id: u64) -> Self {
        Self {
            dir,
            id,
            file: None,
            at: SEGMENT_HEADER,
        }
    }

    /// Write frames at a position; false if that is not the current end.
    pub(super) fn write(
        &mut self,
        (id, at): (u64, u64),
        first: u64,
        body: &[u8],
    ) -> Result<bool, StoreError> {
        if self.file.is_none() || id > self.id {
            self.finish()?;
            if id < self.id {
                return Ok(false);
            }
            segment::create(self.dir, id, first, false)?;
            let path = Kind::Journal.path(self.dir, id);
            let file = File::open_for(&path, Access::Write);
            self.file = Some(file.map_err(StoreError::io(&path))?);
            (self.id, self.at) = (id, SEGMENT_HEADER);
        }
        if (id, at) != (self.id, self.at) {
            return Ok(false);
        }
        if let Some(file) = &self.file {
            file.write_all_at(&mut [IoSlice::new(body)], at)
                .map_err(StoreError::io(self.dir))?;
        }
        self.at += body.len() as u64;
        Ok(true)
    }

    pub(super) fn finish(&mut self) -> Result<(), StoreError> {
        match self.file.take() {
            Some(file) => file.sync_data().map_err(StoreError::io(self.dir)),
            None => Ok(()),
        }
    }
}
