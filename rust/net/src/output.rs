//! What is still to be sent through a socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use smallvec::SmallVec;

use crate::socket::{Socket, Stream};

/// So many buffers go to the system in one call: more than an answer of a share fetch usually has.
const PARTS_AT_ONCE: usize = 32;

/// The queue has passed one of its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It has become larger than the high mark: whoever fills it should stop.
    High,
    /// It has shrunk to the low mark since.
    Low,
}

/// Buffers in the order in which they are sent. Those that are sent stay until `drop_sent`.
#[derive(Debug)]
pub(crate) struct Queue<B> {
    parts: VecDeque<B>,
    /// Buffers at the front that are sent.
    done: usize,
    /// Bytes of the next buffer that are sent already.
    sent: usize,
    /// Bytes that are still to be sent.
    bytes: usize,
}

impl<B> Queue<B> {
    fn new() -> Self {
        Self {
            parts: VecDeque::new(),
            done: 0,
            sent: 0,
            bytes: 0,
        }
    }

    fn push(&mut self, part: B, size: usize) {
        self.parts.push_back(part);
        self.bytes += size;
    }

    fn drop_sent(&mut self) {
        self.parts.drain(..self.done);
        self.done = 0;
    }
}

impl<B: AsRef<[u8]>> Queue<B> {
    /// Sends as much as the system takes; returns false if that was not all.
    pub(crate) fn send(&mut self, stream: &Stream) -> io::Result<bool> {
        while self.bytes > 0 {
            let left = self.parts.range(self.done..).take(PARTS_AT_ONCE);
            let mut from = self.sent;
            let slices: SmallVec<[IoSlice<'_>; PARTS_AT_ONCE]> = left
                .map(|part| IoSlice::new(&part.as_ref()[std::mem::take(&mut from)..]))
                .collect();
            let Some(count) = stream.send(&slices)? else {
                return Ok(false);
            };
            drop(slices);
            self.advance(count);
        }
        Ok(true)
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.bytes, "no more is sent than there is");
        self.bytes -= count;
        let mut left = count;
        while left > 0 {
            let rest = self.parts[self.done].as_ref().len() - self.sent;
            if left < rest {
                self.sent += left;
                return;
            }
            left -= rest;
            self.done += 1;
            self.sent = 0;
        }
    }
}

/// Buffers that are sent in their order, by this thread or by a [sender](crate::Senders).
#[derive(Debug)]
pub struct Output<B> {
    queue: Queue<B>,
    /// Bytes that another thread is sending.
    away: Option<usize>,
    high: usize,
    is_high: bool,
}

impl<B> Output<B> {
    /// An empty queue whose high mark is at `high` bytes, and the low one at a quarter of that.
    pub fn new(high: usize) -> Self {
        Self {
            queue: Queue::new(),
            away: None,
            high,
            is_high: false,
        }
    }

    /// Moves the marks; see `passed`.
    pub fn set_high(&mut self, high: usize) {
        self.high = high;
    }

    /// Bytes that are still to be sent, also by another thread.
    pub fn bytes(&self) -> usize {
        self.queue.bytes + self.away.unwrap_or(0)
    }

    /// Whether another thread is sending: what is pushed waits until it is done.
    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// Appends a buffer of `size` bytes.
    pub fn push(&mut self, part: B, size: usize) {
        if size > 0 {
            self.queue.push(part, size);
        }
    }

    /// Drops what is not sent. What another thread is sending is no longer counted.
    pub fn clear(&mut self) {
        self.queue = Queue::new();
        self.away = None;
    }

    /// Reports once each time that a mark was passed.
    pub fn passed(&mut self) -> Option<Mark> {
        let bytes = self.bytes();
        if !self.is_high && bytes > self.high {
            self.is_high = true;
            Some(Mark::High)
        } else if self.is_high && bytes <= self.high / 4 {
            self.is_high = false;
            Some(Mark::Low)
        } else {
            None
        }
    }

    /// Whether the high mark was passed, and the low one not since.
    pub(crate) fn is_high(&self) -> bool {
        self.is_high
    }

    /// Takes all buffers, for another thread.
    pub(crate) fn lend(&mut self) -> Queue<B> {
        assert!(self.away.is_none(), "one thread at a time sends");
        self.away = Some(self.queue.bytes);
        std::mem::replace(&mut self.queue, Queue::new())
    }

    /// Takes back what another thread has not sent: it precedes what was pushed since.
    pub(crate) fn take_back(&mut self, mut queue: Queue<B>) {
        assert!(self.away.is_some(), "nothing is away");
        self.away = None;
        queue.drop_sent();
        queue.bytes += self.queue.bytes;
        queue.parts.append(&mut self.queue.parts);
        self.queue = queue;
    }
}

impl<B: AsRef<[u8]>> Output<B> {
    /// Sends as much as the socket takes; nothing while another thread is sending.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn send(&mut self, socket: &mut Socket) -> io::Result<()> {
        if self.is_away() || self.queue.bytes == 0 || !socket.is_writable() {
            return Ok(());
        }
        let sent = self.queue.send(socket.stream());
        self.queue.drop_sent();
        if !sent? {
            socket.set_writable(false);
        }
        debug_assert_eq!(self.queue.parts.is_empty(), self.queue.bytes == 0);
        Ok(())
    }
}
