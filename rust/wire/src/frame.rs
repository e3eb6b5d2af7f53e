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
        write!(
            out,
            "a frame claims {size} bytes, {limit} are allowed (socket.request.max.bytes)"
        )
    }
}

/// Collects chunks of a stream until frames are whole.
#[derive(Debug, Default)]
pub struct Framer {
    buffered: Vec<u8>,
    /// Bytes that the first frame in `buffered` has, its size included, once that is known.
    awaited: usize,
}

impl Framer {
    /// Takes the next bytes of the stream, and hands each frame that they complete to `frame`, without its size.
    ///
    /// After an error nothing that comes can be trusted. A frame that claims more than `bytes_max` is refused before
    /// its body is kept.
    pub fn feed<E: From<FrameTooLarge>>(
        &mut self,
        chunk: &[u8],
        bytes_max: usize,
        mut frame: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.buffered.is_empty() {
            let used = self.cut(chunk, bytes_max, &mut frame)?;
            self.buffered.extend_from_slice(&chunk[used..]);
            return Ok(());
        }
        self.buffered.extend_from_slice(chunk);
        if self.buffered.len() < self.awaited {
            return Ok(());
        }
        let buffered = std::mem::take(&mut self.buffered);
        let used = self.cut(&buffered, bytes_max, &mut frame)?;
        if used < buffered.len() {
            self.buffered = buffered[used..].to_vec();
        }
        Ok(())
    }

    fn cut<E: From<FrameTooLarge>>(
        &mut self,
        mut chunk: &[u8],
        bytes_max: usize,
        frame: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let all = chunk.len();
        self.awaited = SIZE_BYTES;
        while let Some((size, rest)) = chunk.split_first_chunk::<SIZE_BYTES>() {
            let claimed = i32::from_be_bytes(*size);
            let size = usize::try_from(claimed)
                .ok()
                .filter(|size| *size <= bytes_max);
            let size = size.ok_or(FrameTooLarge {
                size: claimed,
                limit: bytes_max,
            })?;
            if rest.len() < size {
                self.awaited = SIZE_BYTES + size;
                break;
            }
            frame(&rest[..size])?;
            chunk = &rest[size..];
        }
        Ok(all - chunk.len())
    }
}
