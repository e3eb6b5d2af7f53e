//! Splits a stream of bytes into frames: a four-byte big-endian size, then that many bytes.

use std::fmt;

/// Length of a frame's size field.
pub const SIZE_BYTES: usize = 4;

/// A frame's size is negative or above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTooLarge {
    /// The claimed size.
    pub size: i32,
    /// The limit.
    pub limit: usize,
}

impl fmt::Display for FrameTooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameTooLarge { size, limit } = self;
        match &size.to_be_bytes() {
            // a TLS handshake record, version 3.x: the client hello
            [0x16, 3, ..] => write!(
                out,
                "it speaks TLS on a plaintext listener: set its security.protocol to PLAINTEXT or SASL_PLAINTEXT, or connect to a TLS listener"
            ),
            b"GET " | b"HEAD" | b"POST" | b"PUT " | b"OPTI" => {
                write!(out, "it speaks HTTP on a Kafka listener")
            }
            _ => write!(
                out,
                "a frame claims {size} bytes; at most {limit} are allowed (socket.request.max.bytes)"
            ),
        }
    }
}

/// The next piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A whole frame, without its size.
    Frame(&'a [u8]),
    /// The start of a frame of `size` bytes; the caller collects the rest.
    Start {
        /// Size of the whole frame, without the size field.
        size: usize,
        /// The bytes received so far.
        bytes: &'a [u8],
    },
}

/// Finds frames in the chunks of a stream; buffers nothing except a size field cut in two.
#[derive(Debug, Default)]
pub struct Cutter {
    size: [u8; SIZE_BYTES],
    known: usize,
}

impl Cutter {
    /// Takes the next piece from the front of `chunk`; `None` when the chunk is used up.
    ///
    /// After an error the rest of the stream cannot be trusted. A frame that claims more than `bytes_max` is refused as
    /// soon as its size is known.
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
