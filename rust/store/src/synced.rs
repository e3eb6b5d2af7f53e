//! How far the journal was synced, in a separate file: anything missing before that was confirmed, and is not a torn
//! write.
//!
//! The file is written after each sync and not synced itself. After a crash it may show less than was synced, never
//! more.

use std::{io::IoSlice, path::Path};

use crate::{
    files::{self, Access, File},
    frame::Fields,
};

const NAME: &str = "synced";
const MAGIC: &[u8; 8] = b"SCsyn-1\n";
const SIZE: usize = 40;

const _: () = assert!(
    SIZE >= MAGIC.len() + 3 * size_of::<u64>() + size_of::<u32>(),
    "a mark and its checksum"
);

/// A synced end of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) segment: u64,
    /// The end of its last frame.
    pub(crate) position: u64,
    /// The number after that frame.
    pub(crate) frame: u64,
}

impl Mark {
    /// Reads a directory's mark; `None` if the file is missing or does not match its checksum.
    pub(crate) fn read(dir: &Path) -> Option<Self> {
        let bytes = files::read(&dir.join(NAME)).ok()?;
        let checked = bytes.get(..32)?;
        let mut fields = Fields {
            rest: bytes.get(8..SIZE)?,
        };
        let mark = Self {
            segment: fields.u64()?,
            position: fields.u64()?,
            frame: fields.u64()?,
        };
        let is_whole = checked.starts_with(MAGIC) && fields.u32()? == crc32c::crc32c(checked);
        is_whole.then_some(mark)
    }

    fn bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.segment.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.position.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.frame.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..32]);
        bytes[32..36].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// Writes marks; ignores failures to write the file.
pub(crate) struct MarkWriter(Option<File>);

impl MarkWriter {
    pub(crate) fn new(dir: &Path) -> Self {
        let path = dir.join(NAME);
        let file = File::open_for(&path, Access::Write).or_else(|_| File::create(&path));
        Self(file.ok())
    }

    pub(crate) fn write(&self, mark: Mark) {
        debug_assert!(
            mark.segment > 0 && mark.frame > 1 && mark.position > 0,
            "nothing was synced yet: {mark:?}"
        );
        if let Some(file) = &self.0 {
            let _ = file.write_all_at(&mut [IoSlice::new(&mark.bytes())], 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_not_whole_says_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Mark::read(dir.path()), None);
        let mark = Mark {
            segment: 7,
            position: 4711,
            frame: 99,
        };
        MarkWriter::new(dir.path()).write(mark);
        assert_eq!(Mark::read(dir.path()), Some(mark));
        let path = dir.path().join(NAME);
        let whole = std::fs::read(&path).expect("the file");
        for at in 0..36 {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).expect("written");
            assert_eq!(Mark::read(dir.path()), None, "byte {at}");
            std::fs::write(&path, &whole[..at]).expect("written");
            assert_eq!(Mark::read(dir.path()), None, "cut to {at}");
        }
        let newer = Mark { frame: 100, ..mark };
        std::fs::write(&path, &whole).expect("written");
        MarkWriter::new(dir.path()).write(newer);
        assert_eq!(Mark::read(dir.path()), Some(newer));
    }
}
