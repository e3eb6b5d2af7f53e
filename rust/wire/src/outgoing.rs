//! Responses of one connection on their way out: how much memory they keep, and which bytes are sent next.

use std::collections::VecDeque;
use std::ops::Range;

/// With fewer bytes written, the transport is not asked what it still has.
const NOTED_BYTES: u64 = 16 << 10;

/// The memory that responses of a connection keep.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Bytes of responses that are ready and wait behind others.
    pub ready: u64,
    /// Bytes passed to the transport since it was last asked what it has.
    written: u64,
    /// Bytes of responses under construction.
    held: u64,
    /// Bytes in memory for what the transport has.
    lingering: u64,
    /// The largest buffer among those: all of it stays until its last byte is sent.
    largest: u64,
    /// Bytes that the budget knows of.
    pub counted: u64,
    /// Whether the next response waits until others were read.
    pub waits_for_readers: bool,
}

impl Outgoing {
    /// Note that the transport got so many bytes of a buffer.
    pub fn write(&mut self, bytes: usize, buffer: usize) {
        debug_assert!(bytes <= buffer, "a part is larger than the whole");
        self.written += bytes as u64;
        self.largest = self.largest.max(buffer as u64);
    }

    /// Note that responses under construction hold more, or fewer, bytes.
    pub fn hold(&mut self, change: i64) {
        self.held = self.held.saturating_add_signed(change);
    }

    /// Whether so much was written that memory should be counted again.
    pub fn is_noteworthy(&self) -> bool {
        self.written >= NOTED_BYTES
    }

    /// Count memory again, given the bytes that the transport still has and those that are unsent; `None`: the client has
    /// gone. Return the counts before and now.
    pub fn count(&mut self, transport_bytes: u64, unsent: Option<u64>) -> (u64, u64) {
        let lingering = self.settle(transport_bytes);
        let now = unsent.map_or(0, |unsent| lingering + unsent + self.ready + self.held);
        (std::mem::replace(&mut self.counted, now), now)
    }

    fn settle(&mut self, transport_bytes: u64) -> u64 {
        if transport_bytes == 0 {
            (self.lingering, self.largest) = (0, 0);
        } else {
            let most = transport_bytes + self.largest;
            self.lingering = (self.lingering + self.written)
                .max(transport_bytes)
                .min(most);
        }
        self.written = 0;
        debug_assert!(
            self.lingering >= transport_bytes,
            "what the transport has is in memory"
        );
        self.lingering
    }
}

/// Buffers that are not sent yet. A large response is sent in parts, one per turn of the event loop, so that others are
/// served in between.
#[derive(Debug)]
pub struct Unsent<B> {
    /// So many bytes are sent at a time.
    bytes_max: usize,
    /// With their sizes.
    left: VecDeque<(B, usize)>,
    /// Bytes of all that is left, including the sent part of the first.
    bytes: u64,
    /// Sent bytes of the first.
    sent: usize,
    /// Whether a later turn of the event loop sends more.
    pub is_scheduled: bool,
}

impl<B> Unsent<B> {
    /// A negative number of bytes is any.
    pub fn new(bytes_max: i64) -> Self {
        Self {
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            left: VecDeque::new(),
            bytes: 0,
            sent: 0,
            is_scheduled: false,
        }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Drop all buffers.
    pub fn clear(&mut self) {
        self.left.clear();
        self.bytes = 0;
        self.sent = 0;
    }

    /// Whether a response of this size is sent as it is: nothing is left before it, and it is small enough.
    pub fn passes(&self, size: usize) -> bool {
        self.is_empty() && size <= self.bytes_max
    }

    /// Add a buffer of a response.
    pub fn push(&mut self, buffer: B, size: usize) {
        self.bytes += size as u64;
        self.left.push_back((buffer, size));
    }

    /// Pass what is sent next on, buffer by buffer with the range of its bytes; `all`: whatever is left.
    pub fn next<E>(
        &mut self,
        all: bool,
        outgoing: &mut Outgoing,
        mut give: impl FnMut(&B, Range<usize>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut room = if all { usize::MAX } else { self.bytes_max };
        while room > 0
            && let Some((first, size)) = self.left.front()
        {
            let (from, size) = (self.sent, *size);
            let to = size.min(from.saturating_add(room));
            room -= to - from;
            give(first, from..to, size)?;
            self.sent = to;
            if to == size {
                // its last part is with the transport, and with that all of it
                outgoing.write(size, size);
                self.bytes -= size as u64;
                self.left.pop_front();
                self.sent = 0;
            }
        }
        debug_assert!(
            !self.is_empty() || self.bytes == 0 && self.sent == 0,
            "bytes of nothing"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn sent(
        unsent: &mut Unsent<u8>,
        all: bool,
        outgoing: &mut Outgoing,
    ) -> Vec<(u8, Range<usize>)> {
        let mut parts = Vec::new();
        let given = unsent.next(all, outgoing, |buffer, range, size| {
            assert!(range.end <= size);
            parts.push((*buffer, range));
            Ok::<_, ()>(())
        });
        given.expect("nothing fails");
        parts
    }

    #[test]
    fn small_responses_pass_unless_others_are_left() {
        let mut unsent = Unsent::new(10);
        assert!(unsent.passes(10) && !unsent.passes(11));
        unsent.push(b'a', 3);
        assert!(!unsent.passes(1));
        assert!(Unsent::<u8>::new(-1).passes(usize::MAX));
    }

    #[test]
    fn a_large_response_goes_in_parts() {
        let (mut unsent, mut outgoing) = (Unsent::new(10), Outgoing::default());
        unsent.push(b'a', 4);
        unsent.push(b'b', 15);
        assert_eq!(
            sent(&mut unsent, false, &mut outgoing),
            [(b'a', 0..4), (b'b', 0..6)]
        );
        // the sent part stays in memory with the rest of its buffer
        assert_eq!(unsent.bytes(), 15);
        assert_eq!(sent(&mut unsent, true, &mut outgoing), [(b'b', 6..15)]);
        assert!(unsent.is_empty());
        assert_eq!(outgoing.count(19, Some(unsent.bytes())), (0, 19));
    }

    #[test]
    fn memory_is_counted_until_the_transport_has_sent_it() {
        let mut outgoing = Outgoing::default();
        outgoing.write(100, 100);
        outgoing.write(1_000, 1_000);
        // all of the largest buffer stays until its last byte is sent
        assert_eq!(outgoing.count(500, Some(0)), (0, 1_100));
        assert_eq!(outgoing.count(50, Some(0)), (1_100, 1_050));
        assert_eq!(outgoing.count(0, Some(0)), (1_050, 0));
        outgoing.ready = 7;
        outgoing.hold(5);
        assert_eq!(outgoing.count(0, Some(3)), (0, 15));
        outgoing.hold(-9);
        assert_eq!(outgoing.count(0, Some(3)), (15, 10));
        assert_eq!(outgoing.count(0, None), (10, 0));
    }

    #[test]
    fn few_bytes_are_not_worth_a_count() {
        let mut outgoing = Outgoing::default();
        outgoing.write(NOTED_BYTES as usize - 1, NOTED_BYTES as usize);
        assert!(!outgoing.is_noteworthy());
        outgoing.write(1, 1);
        assert!(outgoing.is_noteworthy());
        outgoing.count(0, Some(0));
        assert!(!outgoing.is_noteworthy());
    }

    proptest! {
        /// Each byte is sent once, in order, whatever the sizes.
        #[test]
        fn every_byte_is_sent_once(sizes in vec(0_usize..40, 1..10), most in 1_i64..30) {
            let (mut unsent, mut outgoing) = (Unsent::new(most), Outgoing::default());
            for (buffer, size) in sizes.iter().enumerate() {
                unsent.push(buffer as u8, *size);
            }
            let mut all = Vec::new();
            while !unsent.is_empty() {
                let parts = sent(&mut unsent, false, &mut outgoing);
                let size: usize = parts.iter().map(|(_, range)| range.len()).sum();
                prop_assert!(size as i64 <= most);
                all.extend(parts.into_iter().flat_map(|(buffer, range)| range.map(move |at| (buffer, at))));
            }
            let expected = sizes.iter().enumerate();
            let expected: Vec<_> = expected
                .flat_map(|(buffer, size)| (0..*size).map(move |at| (buffer as u8, at)))
                .collect();
            prop_assert_eq!(all, expected);
            prop_assert_eq!(unsent.bytes(), 0);
        }
    }
}
