//! Cuts a stream of bytes into frames: four bytes of size, big-endian, then that many bytes.

use std::fmt;

/// Bytes of the size in front of a frame.
pub const SIZE_BYTES: usize = 4;

/// A frame claims a size that is negative or above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTooLarge {
    /// What it claims.
    pub size: i32,
    /// What is allowed.
    pub limit: usize,
}

impl fmt::Display for FrameTooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameTooLarge { size, limit } = self;
        match &size.to_be_bytes() {
            // a record of a TLS handshake, version 3.x: the client's hello
            [0x16, 3, ..] => write!(
                out,
                "it speaks TLS where nothing is encrypted: set its security.protocol to PLAINTEXT or SASL_PLAINTEXT, \
                 or have it connect to a listener with TLS"
            ),
            b"GET " | b"HEAD" | b"POST" | b"PUT " | b"OPTI" => {
                write!(out, "it speaks HTTP where Kafka's protocol is spoken")
            }
            _ => write!(
                out,
                "a frame claims {size} bytes, {limit} are allowed (socket.request.max.bytes)"
            ),
        }
    }
}

/// What a stream brings next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A whole frame, without its size.
    Frame(&'a [u8]),
    /// The start of a frame of `size` bytes, whose rest is still to come: whoever takes it collects the rest.
    Start {
        /// Bytes of the whole frame, without those of its size.
        size: usize,
        /// Those that are there.
        bytes: &'a [u8],
    },
}

/// Finds frames in the chunks of a stream, and keeps nothing of them but a size that is cut in two.
#[derive(Debug, Default)]
pub struct Cutter {
    size: [u8; SIZE_BYTES],
    known: usize,
}

impl Cutter {
    /// Takes the next piece off the front of `chunk`; `None` when the chunk is used up.
    ///
    /// After an error nothing that comes can be trusted. A frame that claims more than `bytes_max` is refused as soon as
    /// its size is known.
    pub fn cut<'a>(
        &mut self,
        chunk: &mut &'a [u8],
        bytes_max: usize,
    ) -> Result<Option<Piece<'a>>, FrameTooLarge> {
        let missing = SIZE_BYTES - self.known;
        let Some((size, rest)) = chunk.split_at_checked(missing) else {
            self.size[self.known..self.known + chunk.len()].copy_from_slice(chunk);
            self.known += chunk.len();
            *chunk = &[];
            return Ok(None);
        };
        self.size[self.known..].copy_from_slice(size);
        self.known = 0;
        let claimed = i32::from_be_bytes(self.size);
        let size = usize::try_from(claimed)
            .ok()
            .filter(|size| *size <= bytes_max);
        let size = size.ok_or(FrameTooLarge {
            size: claimed,
            limit: bytes_max,
        })?;
        if let Some((frame, rest)) = rest.split_at_checked(size) {
            *chunk = rest;
            return Ok(Some(Piece::Frame(frame)));
        }
        *chunk = &[];
        Ok(Some(Piece::Start { size, bytes: rest }))
    }
}
