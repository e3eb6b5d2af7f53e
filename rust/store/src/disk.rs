//! Reading files: from disk, waiting as long as it takes, or only from the page cache.

use std::{fs, io, mem::MaybeUninit};

use crate::files::{self, File};

/// The source of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The disk, waiting for it.
    Disk,
    /// The disk, waiting for it, but not the bucket: what only that has is `WouldBlock`.
    Local,
    /// The page cache; a miss is `WouldBlock`.
    Memory,
}

impl Source {
    /// As `read`, into uninitialized memory; on success all of it is initialized.
    pub(crate) fn fill(self, file: &File, out: &mut [MaybeUninit<u8>], at: u64) -> io::Result<()> {
        if let (File::System(file), Self::Disk | Self::Local) = (file, self) {
            return fill_at(file, out, at);
        }
        let mut bytes = vec![0; out.len()];
        self.read(file, &mut bytes, at)?;
        files::fill(out, &bytes);
        Ok(())
    }

    /// Fills `out` with the bytes at `at`.
    pub(crate) fn read(self, file: &File, out: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::Disk => file.read_exact_at(out, at),
            Self::Local => match file {
                File::Evicted(file) => file.read(self, out, at),
                File::System(_) | File::Memory(_) => file.read_exact_at(out, at),
            },
            Self::Memory => match file {
                File::System(file) => read_cached(file, out, at),
                File::Memory(file) => file.read_cached(out, at),
                File::Evicted(file) => file.read(self, out, at),
            },
        }
    }
}

/// Fills `out` with the bytes at `at`, waiting for the disk.
fn fill_at(file: &fs::File, mut out: &mut [MaybeUninit<u8>], mut at: u64) -> io::Result<()> {
    while !out.is_empty() {
        match rustix::io::pread(file, &mut *out, at) {
            Ok(([], _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((read, _)) => {
                let read = read.len();
                out = &mut out[read..];
                at += read as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Fills `out` without waiting for the disk (preadv2 with `RWF_NOWAIT`). On a file system without support, everything
/// counts as a miss.
#[cfg(target_os = "linux")]
fn read_cached(file: &fs::File, mut out: &mut [u8], mut at: u64) -> io::Result<()> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    while !out.is_empty() {
        let read = preadv2(
            file,
            &mut [io::IoSliceMut::new(out)],
            at,
            ReadWriteFlags::NOWAIT,
        );
        match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                out = &mut out[n..];
                at += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Always a miss: this system does not report what is in memory.
#[cfg(not(target_os = "linux"))]
fn read_cached(_file: &fs::File, out: &mut [u8], _at: u64) -> io::Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    Err(io::ErrorKind::WouldBlock.into())
}
