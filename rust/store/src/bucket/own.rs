//! This directory's writers of the bucket's journal: a file, updated before each claim.
//!
//! A directory must not continue a copy that another one has continued.

use std::{fmt::Write as _, io, path::Path};

use sharecore_bucket::Writer;

use crate::{error::StoreError, files, segment};

const FILE: &str = "bucket.writers";

/// Return the writers; none if the file is missing or damaged.
pub(super) fn read(dir: &Path) -> Result<Vec<Writer>, StoreError> {
    let path = dir.join(FILE);
    match files::read(&path) {
        Ok(bytes) => Ok(parse(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::io(&path)(error)),
    }
}

/// Write the writers atomically.
pub(super) fn write(dir: &Path, writers: &[Writer]) -> Result<(), StoreError> {
    let (path, new) = (dir.join(FILE), dir.join("bucket.new"));
    let mut text = String::new();
    for writer in writers {
        text.push_str("writer=");
        for byte in writer {
            write!(text, "{byte:02x}").expect("memory takes it");
        }
        text.push('\n');
    }
    files::replace(&path, &new, text.as_bytes()).map_err(StoreError::io(&path))?;
    segment::sync_dir(dir)
}

fn parse(bytes: &[u8]) -> Option<Vec<Writer>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let writer = |line: &str| {
        let digits = line.strip_prefix("writer=").filter(|it| it.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
    };
    text.lines().map(writer).collect()
}
