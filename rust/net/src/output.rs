//! What is still to be sent through a socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use smallvec::SmallVec;

use crate::Socket;

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

/// Buffers that are sent in their order.
#[derive(Debug)]
pub struct Output<B> {
    parts: VecDeque<B>,
    /// Bytes of the first buffer that are sent already.
    sent: usize,
    bytes: usize,
    high: usize,
    is_high: bool,
}

impl<B> Output<B> {
    /// An empty queue whose high mark is at `high` bytes, and the low one at a quarter of that.
    pub fn new(high: usize) -> Self {
        Self {
            parts: VecDeque::new(),
            sent: 0,
            bytes: 0,
            high,
            is_high: false,
        }
    }

    /// Moves the marks; see `passed`.
    pub fn set_high(&mut self, high: usize) {
        self.high = high;
    }

    /// Bytes that are still to be sent.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a buffer of `size` bytes.
    pub fn push(&mut self, part: B, size: usize) {
        if size > 0 {
            self.parts.push_back(part);
            self.bytes += size;
        }
    }

    /// Drops what is not sent.
    pub fn clear(&mut self) {
        self.parts.clear();
        (self.sent, self.bytes) = (0, 0);
    }

    /// Sends as much as the socket takes; `view` gives a buffer's bytes.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn send(
        &mut self,
        socket: &mut Socket,
        view: impl for<'b> Fn(&'b B) -> &'b [u8],
    ) -> io::Result<()> {
        while self.bytes > 0 {
            let slices: SmallVec<[IoSlice<'_>; PARTS_AT_ONCE]> = self
                .parts
                .iter()
                .take(PARTS_AT_ONCE)
                .enumerate()
                .map(|(at, part)| IoSlice::new(&view(part)[if at == 0 { self.sent } else { 0 }..]))
                .collect();
            let count = socket.send(&slices)?;
            if count == 0 {
                break;
            }
            drop(slices);
            self.advance(count, &view);
        }
        debug_assert_eq!(self.parts.is_empty(), self.bytes == 0);
        Ok(())
    }

    /// Tells, once each time, that a mark was passed.
    pub fn passed(&mut self) -> Option<Mark> {
        if !self.is_high && self.bytes > self.high {
            self.is_high = true;
            Some(Mark::High)
        } else if self.is_high && self.bytes <= self.high / 4 {
            self.is_high = false;
            Some(Mark::Low)
        } else {
            None
        }
    }

    fn advance(&mut self, count: usize, view: &impl for<'b> Fn(&'b B) -> &'b [u8]) {
        assert!(count <= self.bytes, "no more is sent than there is");
        self.bytes -= count;
        let mut left = count;
        while left > 0
            && let Some(first) = self.parts.front()
        {
            let rest = view(first).len() - self.sent;
            if left < rest {
                self.sent += left;
                return;
            }
            left -= rest;
            self.parts.pop_front();
            self.sent = 0;
        }
    }
}
