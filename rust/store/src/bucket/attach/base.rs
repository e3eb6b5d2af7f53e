//! Copies that restart from a checkpoint, because the journal in the bucket cannot continue.

use std::sync::Arc;

use super::{Attach, Attached, Phase};
use crate::{
    bucket::{
        frames::{Cursor, locate},
        home,
        shared::{Backup, Sealed},
    },
    checkpoint,
    error::StoreError,
    segment::{self, SEGMENT_HEADER},
};

impl Attach {
    /// Restart with the newest checkpoint of the directory: later frames are shipped, and nothing is acknowledged
    /// before.
    pub(super) fn base_of_home(
        &mut self,
        backup: &Backup,
        wall_ms: i64,
    ) -> Result<Attached, StoreError> {
        let newest = segment::list(&backup.dir, "checkpoint")?.pop();
        let bytes = newest.map(|segment| checkpoint::bytes(&backup.dir, segment));
        let found = bytes.transpose()?.and_then(|it| {
            let (since, _) = checkpoint::parts(&it)?;
            Some((since, it))
        });
        let Some((since, bytes)) = found.filter(|_| !home::is_home(&backup.dir)) else {
            let what = "the journal in the bucket does not continue this directory's. Restore the latest state to a new directory, or use another prefix";
            return Ok(Attached::Refused(what.into()));
        };
        self.next = Cursor {
            segment: since.segment,
            at: SEGMENT_HEADER,
            frame: since.frame,
        };
        self.behind = self.from(backup)?;
        let base = Sealed {
            since,
            frame: backup.tail().frame,
            checkpoint: Arc::new(bytes),
        };
        self.claim(backup, Some(base), wall_ms)?;
        Ok(Attached::Not)
    }

    /// Continue once the first checkpoint exists.
    pub(in super::super) fn look(
        &mut self,
        backup: &Backup,
        wall_ms: i64,
    ) -> Result<(), StoreError> {
        let Phase::Base(floor) = self.phase else {
            return Ok(());
        };
        let Some(base) = backup.newest().filter(|it| it.since.segment > floor) else {
            return Ok(());
        };
        self.next = Cursor {
            segment: base.since.segment,
            at: SEGMENT_HEADER,
            frame: base.since.frame,
        };
        self.behind = self.from(backup)?;
        self.claim(backup, Some(base), wall_ms)
    }

    /// Bytes of frames committed since the next one.
    pub(super) fn from(&self, backup: &Backup) -> Result<u64, StoreError> {
        let (tail, _) = backup.take_committed();
        let found = locate(&backup.dir, self.next.frame, tail)?;
        Ok(found.map_or(0, |(_, bytes)| bytes))
    }
}
