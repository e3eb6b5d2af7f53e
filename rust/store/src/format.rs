//! The format of a data directory: one number for everything in it, kept in a file of its own.
//!
//! It covers the files of the store and what others put into catalogue and logs. It grows when a release begins to
//! write what the releases before it cannot read. See `docs/store-format.md`.

use std::{
    io::{self, Write},
    path::Path,
};

use crate::{
    error::StoreError,
    files::{self, File},
    segment,
};

/// The format that this code writes; it reads this one and all below.
pub const FORMAT: u32 = 1;

const FILE: &str = "format";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Refuses a directory that a newer release has written; tells whether its format has to be written down.
///
/// A directory without the file is of format 1 or new: format 1 was served before there was a file.
pub(crate) fn check(dir: &Path) -> Result<bool, StoreError> {
    let path = dir.join(FILE);
    let text = match files::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(StoreError::io(&path)(error)),
    };
    let Some((format, release)) = parse(&text) else {
        return Err(StoreError::damaged(
            path,
            0,
            "it should say format=NUMBER and release=VERSION",
        ));
    };
    if format > FORMAT {
        return Err(StoreError::Newer {
            dir: dir.into(),
            format,
            release: release.into(),
        });
    }
    Ok(format < FORMAT)
}

/// Writes this code's format down, in one step or not at all.
pub(crate) fn write(dir: &Path) -> Result<(), StoreError> {
    let (path, new) = (dir.join(FILE), dir.join("format.new"));
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(format!("format={FORMAT}\nrelease={RELEASE}\n").as_bytes())?;
        file.sync_data()?;
        files::rename(&new, &path)
    };
    write().map_err(StoreError::io(&path))?;
    segment::sync_dir(dir)
}

fn parse(text: &[u8]) -> Option<(u32, &str)> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let format = lines.next()?.strip_prefix("format=")?.parse().ok()?;
    let release = lines.next()?.strip_prefix("release=")?;
    (format > 0).then_some((format, release))
}
