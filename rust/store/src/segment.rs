//! Journal segments on disk: names, headers and listing.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use sharecore_bucket as bucket;

use crate::{
    error::StoreError,
    files::{self, File},
    frame::Fields,
};

/// Bytes before the first frame of a segment.
pub(crate) const SEGMENT_HEADER: u64 = 32;
const MAGIC: &[u8; 8] = b"SCseg-1\n";

const _: () = assert!(
    SEGMENT_HEADER as usize >= MAGIC.len() + 8 + 8 + 4,
    "magic, number, first frame, checksum"
);

/// The layout of a segment's batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// In the frames that wrote them.
    Journal,
    /// Concatenated: the live batches of older segments.
    Compact,
}

impl Kind {
    /// The kind of a segment in a bucket.
    pub(crate) fn of(segment: bucket::Segment) -> Self {
        if segment.is_compact {
            Self::Compact
        } else {
            Self::Journal
        }
    }

    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Compact => "compact",
        }
    }

    /// Path of a segment.
    pub(crate) fn path(self, dir: &Path, id: u64) -> PathBuf {
        dir.join(format!("{id:016x}.{}", self.suffix()))
    }
}

/// Segment IDs are below this: a file with a higher one is not ours.
const ID_END: u64 = 1 << 62;

/// IDs of the files in `dir` that end in `.suffix`, ascending. Files with names that the store does not use are
/// ignored.
pub(crate) fn list(dir: &Path, suffix: &str) -> Result<Vec<u64>, StoreError> {
    let mut ids = Vec::new();
    for path in files::list(dir).map_err(StoreError::io(dir))? {
        if path.extension().is_some_and(|e| e == suffix) {
            let stem = path.file_stem().and_then(|s| s.to_str());
            let id = stem.and_then(|s| u64::from_str_radix(s, 16).ok());
            let named = |id: &u64| stem == Some(&format!("{id:016x}")) && *id < ID_END;
            ids.extend(id.filter(named));
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

/// Makes created, renamed and removed names durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    files::sync_dir(dir).map_err(StoreError::io(dir))
}

/// The header of a segment whose first frame has the given number.
pub(crate) fn header(id: u64, first_frame: u64) -> [u8; SEGMENT_HEADER as usize] {
    let mut header = [0; SEGMENT_HEADER as usize];
    header[0..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&id.to_le_bytes());
    header[16..24].copy_from_slice(&first_frame.to_le_bytes());
    let crc = crc32c::crc32c(&header[0..24]);
    header[24..28].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Creates a journal segment whose first frame will have the given number; leaves no file on failure.
pub(crate) fn create(
    dir: &Path,
    id: u64,
    first_frame: u64,
    durable: bool,
) -> Result<File, StoreError> {
    assert!(
        0 < id && id < ID_END && first_frame > 0,
        "a segment that no start would find"
    );
    let path = Kind::Journal.path(dir, id);
    let attempt = || -> io::Result<File> {
        let mut file = File::create(&path)?;
        file.write_all(&header(id, first_frame))?;
        if durable {
            file.sync_data()?;
            files::sync_dir(dir)?;
        }
        Ok(file)
    };
    attempt().map_err(|error| {
        let _ = files::remove(&path);
        StoreError::io(&path)(error)
    })
}

/// Reads the number of a segment's first frame from its header; `None` if the header never reached the disk.
pub(crate) fn first_frame(path: &Path, id: u64) -> Result<Option<u64>, StoreError> {
    let mut header = [0; SEGMENT_HEADER as usize];
    let mut file = File::open(path).map_err(StoreError::io(path))?;
    if file.read_exact(&mut header).is_err() {
        return Ok(None);
    }
    let mut fields = Fields {
        rest: &header[8..28],
    };
    let (written_id, first) = (fields.u64(), fields.u64());
    let intact = &header[0..8] == MAGIC
        && written_id == Some(id)
        && fields.u32() == Some(crc32c::crc32c(&header[0..24]));
    Ok(first.filter(|_| intact))
}
