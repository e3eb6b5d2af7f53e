//! Which sockets are ready.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::Socket;

/// Reported instead of a socket once another thread has woken the poller.
const WOKEN: Token = Token(usize::MAX);

/// A socket that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The key that it was added with.
    pub key: usize,
    /// It has bytes, or its end.
    pub readable: bool,
    /// It takes bytes.
    pub writable: bool,
    /// The peer sends nothing more, or the connection is broken.
    pub ended: bool,
}

/// Watches sockets. Each change of a socket is reported once (edge-triggered): a socket remembers the last report.
pub struct Poller {
    poll: Poll,
    events: Events,
}

impl Poller {
    /// A poller that reports at most `at_once` sockets per call; the others follow with the next one.
    pub fn new(at_once: usize) -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(at_once),
        })
    }

    /// Watches a socket, which is reported with `key`.
    pub fn add(&self, socket: &Socket, key: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry.register(&mut SourceFd(&socket.as_raw_fd()), Token(key), interest)
    }

    /// What other threads make this poller readable with. A poller has at most one.
    pub(crate) fn waker(&self) -> io::Result<Waker> {
        Waker::new(self.poll.registry(), WOKEN)
    }

    /// Stops watching a socket.
    pub fn remove(&self, socket: &Socket) -> io::Result<()> {
        let registry = self.poll.registry();
        registry.deregister(&mut SourceFd(&socket.as_raw_fd()))
    }

    /// Appends the sockets that are ready now; does not wait.
    pub fn ready(&mut self, found: &mut Vec<Ready>) -> io::Result<()> {
        loop {
            match self
                .poll
                .poll(&mut self.events, Some(std::time::Duration::ZERO))
            {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let sockets = self.events.iter().filter(|event| event.token() != WOKEN);
        found.extend(sockets.map(|event| {
            let ended = event.is_read_closed() || event.is_error();
            Ready {
                key: event.token().0,
                readable: event.is_readable() || ended,
                writable: event.is_writable() || event.is_write_closed() || event.is_error(),
                ended,
            }
        }));
        Ok(())
    }
}

impl AsRawFd for Poller {
    fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }
}
