//! One connected socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// What came of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes; `more` is whether there may be others at once.
    Bytes {
        /// How many; never 0.
        count: usize,
        /// Whether to receive again without waiting for the poller.
        more: bool,
    },
    /// Nothing until the poller reports the socket again.
    Nothing,
    /// The peer sends nothing more.
    End,
}

/// A stream that never blocks, closed when its last owner drops it.
#[derive(Debug)]
pub(crate) struct Stream(socket2::Socket);

impl Stream {
    /// Sends bytes; returns how many the system took, or None if it takes none until the poller reports the socket again.
    pub(crate) fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        loop {
            let sent = match parts {
                [part] => self.0.send(part),
                parts => self.0.send_vectored(parts),
            };
            match sent {
                Ok(sent) => return Ok(Some(sent)),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
    }
}

/// A connected socket and what the poller has reported about it.
#[derive(Debug)]
pub struct Socket {
    stream: Arc<Stream>,
    readable: bool,
    writable: bool,
    ended: bool,
}

impl Socket {
    /// Takes over a connected stream socket.
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let inner = socket2::Socket::from(descriptor);
        inner.set_nonblocking(true)?;
        Ok(Self {
            stream: Arc::new(Stream(inner)),
            // known to be ready when the poller says so
            readable: false,
            // a failed attempt shows it
            writable: true,
            ended: false,
        })
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The stream for another thread, which sends. From now on only a report of the poller says that it takes bytes.
    pub(crate) fn lend(&mut self) -> Arc<Stream> {
        self.writable = false;
        Arc::clone(&self.stream)
    }

    /// Notes whether the system may take more; if not, the poller reports the socket when it does.
    pub(crate) fn set_writable(&mut self, writable: bool) {
        self.writable = writable;
    }

    /// Whether the system may take bytes.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Notes what a poller has reported.
    pub fn note(&mut self, readable: bool, writable: bool, ended: bool) {
        self.readable |= readable;
        self.writable |= writable;
        self.ended |= ended;
    }

    /// Whether there may be something to receive.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Receives bytes.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn receive(&mut self, into: &mut [MaybeUninit<u8>]) -> io::Result<Received> {
        assert!(!into.is_empty(), "an end would look like a full buffer");
        if !self.readable {
            return Ok(Received::Nothing);
        }
        loop {
            match self.stream.0.recv(into) {
                Ok(0) => {
                    self.readable = false;
                    return Ok(Received::End);
                }
                Ok(count) => {
                    // a stream that gives less than it could is empty; its end comes as a read of its own
                    self.readable = count == into.len() || self.ended;
                    let more = self.readable;
                    return Ok(Received::Bytes { count, more });
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => {
                        self.readable = false;
                        return Ok(Received::Nothing);
                    }
                    _ => return Err(error),
                },
            }
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.0.as_raw_fd()
    }
}
