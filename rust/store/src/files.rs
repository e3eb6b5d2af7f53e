//! The files of a store: the operating system's, or those of a memory disk mounted on their directory.

use std::{
    fs,
    io::{self, IoSlice, Read, Seek, SeekFrom, Write},
    mem::MaybeUninit,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::{
    disk::Source,
    evicted::{self, EvictedFile},
    memory::{self, Handle},
};

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// For reading.
    Read,
    /// For reading and writing; must exist.
    Write,
    /// For reading and writing, truncated.
    Create,
}

/// An open file.
#[derive(Debug)]
pub(crate) enum File {
    /// The operating system's.
    System(fs::File),
    /// On a memory disk.
    Memory(Handle),
    /// Of an evicted segment; for reading.
    Evicted(Box<EvictedFile>),
}

impl File {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::open_for(path, Access::Read)
    }

    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Self::open_for(path, Access::Create)
    }

    pub(crate) fn open_for(path: &Path, access: Access) -> io::Result<Self> {
        let file = Self::open_plainly(path, access)?;
        match access {
            Access::Read => EvictedFile::around(file, path),
            Access::Write | Access::Create => Ok(file),
        }
    }

    fn open_plainly(path: &Path, access: Access) -> io::Result<Self> {
        if let Some(disk) = memory::mounted(path) {
            return disk.open(path, access).map(Self::Memory);
        }
        let mut options = fs::OpenOptions::new();
        options.read(true).write(access != Access::Read);
        if access == Access::Create {
            options.create(true).truncate(true);
        }
        options.open(path).map(Self::System)
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        match self {
            Self::System(file) => Ok(file.metadata()?.len()),
            Self::Memory(file) => file.len(),
            Self::Evicted(file) => Ok(file.len()),
        }
    }

    /// Whether a read of these bytes waits for the bucket.
    pub(crate) fn waits_for_bucket(&self, at: u64, length: u64) -> bool {
        matches!(self, Self::Evicted(file) if length > 0 && file.waits(&(at..at + length)))
    }

    /// Whether a read of `from` to `end` may be extended to `further`: not from what an evicted segment has kept into what
    /// only the bucket has.
    pub(crate) fn reads_along(&self, from: u64, end: u64, further: u64) -> bool {
        match self {
            Self::System(_) | Self::Memory(_) => true,
            Self::Evicted(file) => !file.keeps(&(from..end)) || file.keeps(&(from..further)),
        }
    }

    pub(crate) fn set_len(&self, size: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.set_len(size),
            Self::Memory(file) => file.set_len(size),
            Self::Evicted(_) => Err(evicted::elsewhere()),
        }
    }

    pub(crate) fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::System(file) => file.sync_data(),
            Self::Memory(file) => file.sync(),
            Self::Evicted(file) => file.sync_data(),
        }
    }

    pub(crate) fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.read_exact_at(out, at),
            Self::Memory(file) => file.read_exact_at(out, at),
            Self::Evicted(file) => file.read(Source::Disk, out, at),
        }
    }

    pub(crate) fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        match self {
            Self::System(file) => file.write_at(bytes, at),
            Self::Memory(file) => file.write_at(bytes, at),
            Self::Evicted(_) => Err(evicted::elsewhere()),
        }
    }

    /// Writes all pieces, one after the other.
    pub(crate) fn write_all_at(
        &self,
        mut pieces: &mut [IoSlice<'_>],
        mut at: u64,
    ) -> io::Result<()> {
        while !pieces.is_empty() {
            let written = match self {
                Self::System(file) => {
                    rustix::io::pwritev(file, pieces, at).map_err(io::Error::from)
                }
                Self::Memory(file) => {
                    let bytes: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
                    file.write_at(&bytes.concat(), at)
                }
                Self::Evicted(_) => Err(evicted::elsewhere()),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut pieces, written);
                    at += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Copies to uninitialized memory of the same length.
pub(crate) fn fill(out: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    // the caller takes all of it as initialized
    assert_eq!(out.len(), bytes.len(), "a byte for every place");
    for (place, byte) in out.iter_mut().zip(bytes) {
        place.write(*byte);
    }
}

impl Read for &File {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            File::System(file) => (&*file).read(out),
            File::Memory(file) => file.read(out),
            File::Evicted(_) => Err(evicted::elsewhere()),
        }
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            File::System(file) => (&*file).write(bytes),
            File::Memory(file) => file.write(bytes),
            File::Evicted(_) => Err(evicted::elsewhere()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            File::System(file) => (&*file).seek(to),
            File::Memory(file) => file.seek(to),
            File::Evicted(_) => Err(evicted::elsewhere()),
        }
    }
}

impl Read for File {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self).read(out)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

/// The whole content of a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    if memory::mounted(path).is_none() {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file atomically, through a temporary one beside it.
pub(crate) fn replace(path: &Path, new: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(new)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    rename(new, path)
}

/// As `replace`, but a crash of the machine may leave the old content, or a part of the new one.
pub(crate) fn replace_unsynced(path: &Path, new: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create(new)?.write_all(bytes)?;
    rename(new, path)
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match memory::mounted(from) {
        Some(disk) => disk.rename(from, to),
        None => fs::rename(from, to),
    }
}

pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match memory::mounted(path) {
        Some(disk) => disk.remove(path),
        None => fs::remove_file(path),
    }
}

/// The names in a directory.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match memory::mounted(dir) {
        Some(disk) => disk.list(),
        None => fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect(),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    match memory::mounted(dir) {
        Some(disk) => disk.sync_names(),
        None => fs::File::open(dir)?.sync_all(),
    }
}
