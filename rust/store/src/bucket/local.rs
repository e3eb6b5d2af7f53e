//! Which of a directory's segment files match a name in the bucket: a file of lines, in a directory with durability
//! `bucket`.
//!
//! Segment IDs are reused by another directory that continues the journal; names in the bucket are not.

use std::{collections::BTreeMap, fmt::Write as _, io, io::IoSlice, path::Path};

use sharecore_bucket::Segment;

use crate::{
    error::StoreError,
    files::{self, Access, File},
    segment::Kind,
};

const FILE: &str = "bucket.local";

/// Files known to be in the bucket, with their names there and their sizes.
pub(super) type Local = BTreeMap<Segment, u64>;

/// Return the path of a segment's file.
pub(super) fn path(dir: &Path, segment: Segment) -> std::path::PathBuf {
    Kind::of(segment).path(dir, segment.id)
}

/// Read the known files. The last line about a file counts, and only if the file has its size.
pub(super) fn read(dir: &Path) -> Result<Local, StoreError> {
    let file = dir.join(FILE);
    let bytes = match files::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Local::new()),
        Err(error) => return Err(StoreError::io(&file)(error)),
    };
    let mut newest: BTreeMap<(u64, bool), (Segment, u64)> = BTreeMap::new();
    for line in String::from_utf8_lossy(&bytes).lines() {
        if let Some((segment, size)) = parse(line) {
            newest.insert((segment.id, segment.is_compact), (segment, size));
        }
    }
    let is_there = |(segment, size): &(Segment, u64)| {
        let found = File::open(&path(dir, *segment)).and_then(|file| file.len());
        found.is_ok_and(|found| found == *size)
    };
    Ok(newest.into_values().filter(is_there).collect())
}

/// Record that a file is in the bucket.
pub(super) fn add(dir: &Path, segment: Segment, size: u64) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    let attempt = || {
        let file = File::open_for(&path, Access::Write).or_else(|_| File::create(&path))?;
        let mut lines = String::new();
        push(&mut lines, segment, size);
        file.write_all_at(&mut [IoSlice::new(lines.as_bytes())], file.len()?)?;
        file.sync_data()
    };
    attempt().map_err(StoreError::io(&path))
}

/// Rewrite the list of known files.
pub(super) fn write(dir: &Path, local: &Local) -> Result<(), StoreError> {
    let mut lines = String::new();
    for (segment, size) in local {
        push(&mut lines, *segment, *size);
    }
    files::replace(&dir.join(FILE), &dir.join("bucket.new"), lines.as_bytes())
        .map_err(StoreError::io(dir))
}

fn push(lines: &mut String, segment: Segment, size: u64) {
    let kind = Kind::of(segment).suffix();
    let (id, epoch) = (segment.id, segment.epoch);
    // the dot marks a complete line
    writeln!(lines, "{kind} {id} {epoch} {size} .").expect("memory takes it");
}

fn parse(line: &str) -> Option<(Segment, u64)> {
    let [kind, id, epoch, size, "."] = line.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let segment = Segment {
        id: id.parse().ok()?,
        epoch: epoch.parse().ok()?,
        is_compact: kind == "compact",
    };
    Some((segment, size.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_about_a_file_counts_while_the_file_has_its_size() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        let segment = |id, epoch| Segment {
            id,
            epoch,
            is_compact: false,
        };
        for id in [7, 8] {
            std::fs::write(path(dir, segment(id, 1)), b"12345").expect("written");
        }
        add(dir, segment(7, 1), 5).expect("noted");
        add(dir, segment(8, 1), 5).expect("noted");
        add(dir, segment(9, 1), 5).expect("noted");
        add(dir, segment(7, 2), 5).expect("noted");
        let known = Local::from([(segment(7, 2), 5), (segment(8, 1), 5)]);
        assert_eq!(read(dir).expect("read"), known);
        std::fs::write(path(dir, segment(8, 1)), b"1234").expect("written");
        let known = Local::from([(segment(7, 2), 5)]);
        assert_eq!(read(dir).expect("read"), known);
        write(dir, &known).expect("written");
        assert_eq!(read(dir).expect("read"), known);
    }
}
