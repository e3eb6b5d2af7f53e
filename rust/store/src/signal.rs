//! A file descriptor that becomes readable when a write becomes durable.

use std::{
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::fd::{AsRawFd, RawFd},
    sync::atomic::{AtomicBool, Ordering},
};

#[derive(Debug)]
pub(crate) struct Signal {
    reader: PipeReader,
    writer: PipeWriter,
    raised: AtomicBool,
}

impl Signal {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self {
            reader,
            writer,
            raised: AtomicBool::new(false),
        })
    }

    pub(crate) fn fileno(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// Raises the signal unless it is raised, so the pipe never holds more than a byte.
    pub(crate) fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            let _ = (&self.writer).write(&[1]);
        }
    }

    /// Lowers the signal. Later durable writes raise it again. Waits for a byte that is just being written.
    pub(crate) fn lower(&self) {
        if self.raised.load(Ordering::Acquire) {
            let _ = (&self.reader).read(&mut [0]);
            self.raised.store(false, Ordering::Release);
        }
    }
}
