//! The format of a data directory: one number for all of it, in its own file.
//!
//! Covers the files of the store and the content of catalog and logs. It grows when a release begins to write what
//! earlier releases cannot read. See `docs/store-format.md`.

use std::{
    io::{self, Write},
    path::Path,
};

use crate::{
    error::StoreError,
    files::{self, File},
    segment,
};

/// The format that this code writes; it reads all formats up to this one.
pub const FORMAT: u32 = 1;

const FILE: &str = "format";
const CHECKSUM: &str = "checksum=";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

const _: () = assert!(FORMAT > 0, "zero is not a format");

/// Refuses a directory written by a newer release; returns whether its format must be written.
///
/// A directory without the file is of format 1 or new: format 1 is older than the file. A file without a checksum is
/// from a release that wrote none, and is rewritten.
pub(crate) fn check(dir: &Path) -> Result<bool, StoreError> {
    let path = dir.join(FILE);
    let text = match files::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(StoreError::io(&path)(error)),
    };
    let Some(Parsed {
        format,
        release,
        is_checked,
    }) = parse(&text)
    else {
        return Err(StoreError::damaged(
            path,
            0,
            "it should contain format=NUMBER, release=VERSION and the checksum of both lines",
        ));
    };
    if format > FORMAT {
        return Err(StoreError::Newer {
            dir: dir.into(),
            format,
            release: release.into(),
        });
    }
    Ok(format < FORMAT || !is_checked)
}

/// Writes this code's format atomically.
pub(crate) fn write(dir: &Path) -> Result<(), StoreError> {
    let (path, new) = (dir.join(FILE), dir.join("format.new"));
    let write = || {
        let mut file = File::create(&new)?;
        let lines = format!("format={FORMAT}\nrelease={RELEASE}\n");
        let crc = crc32c::crc32c(lines.as_bytes());
        let text = format!("{lines}{CHECKSUM}{crc:08x}\n");
        assert!(
            parse(text.as_bytes()).is_some_and(|read| read.format == FORMAT && read.is_checked),
            "a directory that could not be opened"
        );
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        files::rename(&new, &path)
    };
    write().map_err(StoreError::io(&path))?;
    segment::sync_dir(dir)
}

struct Parsed<'a> {
    format: u32,
    release: &'a str,
    is_checked: bool,
}

/// `None` if the text is damaged: a flipped bit may give another number, which only the checksum can distinguish from a
/// newer release's.
fn parse(text: &[u8]) -> Option<Parsed<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    let (format, rest) = text.strip_prefix("format=")?.split_once('\n')?;
    let (release, rest) = rest.strip_prefix("release=")?.split_once('\n')?;
    if !rest.is_empty() {
        let crc = rest.strip_prefix(CHECKSUM)?.strip_suffix('\n')?;
        let crc = u32::from_str_radix(crc, 16).ok()?;
        let lines = &text[..text.len() - rest.len()];
        if crc != crc32c::crc32c(lines.as_bytes()) {
            return None;
        }
    }
    let format = format.parse().ok().filter(|format| *format > 0)?;
    let is_version = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    (!release.is_empty() && release.bytes().all(is_version)).then_some(Parsed {
        format,
        release,
        is_checked: !rest.is_empty(),
    })
}
