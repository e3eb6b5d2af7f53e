//! One connected socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

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

/// A stream socket that never blocks, closed when it is dropped.
#[derive(Debug)]
pub struct Socket {
    inner: socket2::Socket,
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
            inner,
            // known to be ready when the poller says so
            readable: false,
            // a failing attempt tells
            writable: true,
            ended: false,
        })
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
        assert!(!into.is_empty(), "an end could not be told from no room");
        if !self.readable {
            return Ok(Received::Nothing);
        }
        loop {
            match self.inner.recv(into) {
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

    /// Sends bytes; returns how many the system took, 0 where it takes none until the poller reports the socket again.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.writable {
            return Ok(0);
        }
        loop {
            let sent = match parts {
                [part] => self.inner.send(part),
                parts => self.inner.send_vectored(parts),
            };
            match sent {
                Ok(sent) => return Ok(sent),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => {
                        self.writable = false;
                        return Ok(0);
                    }
                    _ => return Err(error),
                },
            }
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}
