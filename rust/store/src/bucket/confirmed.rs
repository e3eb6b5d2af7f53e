//! The newest object with frames that this directory knows to be in the bucket: a file, written about once a second.
//!
//! A bucket that was restored to an earlier state looks sound. Without this file a home would go on there, and drop what
//! was confirmed since.

use std::path::Path;

use sharecore_bucket::{Answer, Bucket, Folded, HEADER, Shipped, What, names, read_header};

use super::{
    copy::Copied,
    restore::{BucketError, Restored},
};
use crate::files;

const FILE: &str = "bucket.confirmed";
const PAUSE_MS: u64 = 1000;

/// An object with frames that is in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Confirmed(Folded);

impl Confirmed {
    /// Return what the directory knows; None if the file is missing or damaged.
    pub(super) fn read(dir: &Path) -> Option<Self> {
        let bytes = files::read(&dir.join(FILE)).ok()?;
        let mut numbers = std::str::from_utf8(&bytes).ok()?.lines();
        let found = Folded {
            place: numbers.next()?.strip_prefix("place=")?.parse().ok()?,
            frame: numbers.next()?.strip_prefix("frame=")?.parse().ok()?,
            ms: numbers.next()?.strip_prefix("ms=")?.parse().ok()?,
        };
        (numbers.next() == Some("end")).then_some(Self(found))
    }

    /// Of the newest object that a restore has read.
    pub(super) fn restored(copied: &Copied) -> Option<Self> {
        copied.folded.last().copied().map(Self)
    }

    /// Without a sync: after a crash of the machine, an older or a missing file is no worse than none.
    pub(super) fn write(&self, dir: &Path) {
        let Folded { place, frame, ms } = self.0;
        let text = format!("place={place}\nframe={frame}\nms={ms}\nend\n");
        // who reads an older one notices less
        let _ = files::replace_unsynced(&dir.join(FILE), &dir.join("bucket.new"), text.as_bytes());
    }

    /// Refuse a bucket whose journal ends before this object, or has another one there.
    pub(super) fn check(
        &self,
        bucket: &mut dyn Bucket,
        restored: &Restored,
    ) -> Result<(), BucketError> {
        let copied = restored.end.as_ref().map(|end| &end.copied);
        let end = copied.map_or(restored.place + 1, |copied| copied.walk.place);
        let place = self.0.place;
        let name = names::journal(place);
        let ends_before = end <= place;
        let mut read = copied.iter().flat_map(|copied| &copied.folded);
        let is_another = !ends_before
            && match read.find(|it| it.place == place) {
                Some(found) => *found != self.0,
                // a checkpoint covers it: it may be gone
                None => self.is_another(bucket, &name),
            };
        if !ends_before && !is_another {
            return Ok(());
        }
        let how = if ends_before {
            "lacks"
        } else {
            "has another object as"
        };
        Err(BucketError::Nothing(format!(
            "the bucket {how} {name}, which this broker has confirmed: it was set back to an earlier state, or is another copy. To serve what it has, start with an empty data directory"
        )))
    }
}

impl Confirmed {
    fn is_another(&self, bucket: &mut dyn Bucket, name: &str) -> bool {
        let range = Some(0..HEADER as u64);
        let name = name.to_owned();
        let Answer::Bytes(head) = bucket.ask(What::Get { name, range }) else {
            return false;
        };
        read_header(&head).is_ok_and(|header| Folded::of(&header) != self.0)
    }
}

/// What a leader has confirmed, and when it was written down.
#[derive(Default)]
pub(super) struct ConfirmedFile {
    newest: Option<Confirmed>,
    written: Option<Confirmed>,
    written_ms: u64,
}

impl ConfirmedFile {
    pub(super) fn note(&mut self, shipped: &Shipped) {
        if shipped.header.frames.count > 0 {
            self.newest = Some(Confirmed(Folded::of(&shipped.header)));
        }
    }

    /// Write it down now and then, or because the store is closing.
    pub(super) fn write(&mut self, dir: &Path, now_ms: u64, is_closing: bool) {
        let is_due = is_closing || now_ms >= self.written_ms + PAUSE_MS;
        if let Some(newest) = self
            .newest
            .filter(|_| is_due && self.newest != self.written)
        {
            newest.write(dir);
            self.written = self.newest;
            self.written_ms = now_ms;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_torn_says_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Confirmed::read(dir.path()), None);
        let confirmed = Confirmed(Folded {
            place: 7,
            frame: 12,
            ms: -1,
        });
        confirmed.write(dir.path());
        assert_eq!(Confirmed::read(dir.path()), Some(confirmed));
        let whole = files::read(&dir.path().join(FILE)).expect("readable");
        for end in 0..whole.len() - 1 {
            std::fs::write(dir.path().join(FILE), &whole[..end]).expect("written");
            assert_eq!(Confirmed::read(dir.path()), None, "{end} bytes");
        }
    }
}
