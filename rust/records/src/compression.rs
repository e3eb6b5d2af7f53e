//! Compression of record batches.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use crate::{
    expand::{Expander, SNAPPY_JAVA},
    fault::Fault,
};

/// A compression type, numbered as in the batch's attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// RFC 1952.
    Gzip,
    /// Blocks in snappy-java's framing, or one bare block.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// The type with this ID.
    pub fn from_id(id: i16) -> Result<Self, Fault> {
        Ok(match id {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return Err(Fault::Compression(id)),
        })
    }

    /// Its ID.
    pub fn id(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }
}

/// Decompresses `bytes` to at most `limit` bytes.
///
/// # Errors
///
/// Fails unless the bytes are one whole stream of this compression within the limit.
pub fn decompress(
    compression: Compression,
    bytes: &[u8],
    limit: usize,
) -> Result<Cow<'_, [u8]>, Fault> {
    if compression == Compression::None {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut expander = Expander::new(compression, bytes)?;
    let mut out = Vec::new();
    loop {
        if expander.next_size() > limit.saturating_sub(out.len())
            && compression == Compression::Snappy
        {
            return Err(Fault::TooLarge { limit });
        }
        let piece = expander.next_piece()?;
        if piece.is_empty() {
            return Ok(Cow::Owned(out));
        }
        if piece.len() > limit - out.len() {
            return Err(Fault::TooLarge { limit });
        }
        out.extend_from_slice(piece);
    }
}

/// Bytes in one block of snappy-java's framing.
const SNAPPY_BLOCK: usize = 32 << 10;

/// A compression type and level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codec {
    /// The compression.
    pub compression: Compression,
    /// The level of gzip (1 to 9) or zstd; `None` for the default. Other types have no levels.
    pub level: Option<i32>,
}

impl From<Compression> for Codec {
    fn from(compression: Compression) -> Self {
        Self {
            compression,
            level: None,
        }
    }
}

/// Compresses data piece by piece.
pub struct Compressor(Stream);

enum Stream {
    None(Vec<u8>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    /// The output, and the block being filled.
    Snappy(Vec<u8>, Vec<u8>),
}

impl Compressor {
    /// Starts a stream.
    ///
    /// # Errors
    ///
    /// Fails for an invalid level.
    pub fn new(codec: Codec) -> io::Result<Self> {
        let out = Vec::new();
        Ok(Self(match codec.compression {
            Compression::None => Stream::None(out),
            Compression::Gzip => {
                let level = codec
                    .level
                    .and_then(|level| u32::try_from(level).ok())
                    .map_or_else(flate2::Compression::default, flate2::Compression::new);
                Stream::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            Compression::Lz4 => {
                // the format that all clients read: independent blocks of 64 KB
                let info = lz4_flex::frame::FrameInfo::new()
                    .block_mode(lz4_flex::frame::BlockMode::Independent)
                    .block_size(lz4_flex::frame::BlockSize::Max64KB);
                let encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, out);
                Stream::Lz4(Box::new(encoder))
            }
            Compression::Zstd => {
                let level = codec.level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
                Stream::Zstd(zstd::stream::write::Encoder::new(out, level)?)
            }
            Compression::Snappy => {
                let mut out = SNAPPY_JAVA.to_vec();
                out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
                Stream::Snappy(out, Vec::with_capacity(SNAPPY_BLOCK))
            }
        }))
    }

    /// Compresses more.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Stream::None(out) => out.extend_from_slice(bytes),
            Stream::Gzip(encoder) => encoder.write_all(bytes)?,
            Stream::Lz4(encoder) => encoder.write_all(bytes)?,
            Stream::Zstd(encoder) => encoder.write_all(bytes)?,
            Stream::Snappy(out, block) => {
                while !bytes.is_empty() {
                    let (now, later) = bytes.split_at(bytes.len().min(SNAPPY_BLOCK - block.len()));
                    block.extend_from_slice(now);
                    bytes = later;
                    if block.len() == SNAPPY_BLOCK {
                        put_snappy_block(out, block)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Output bytes so far, possibly excluding the last input.
    pub fn written(&self) -> usize {
        match &self.0 {
            Stream::None(out) | Stream::Snappy(out, _) => out.len(),
            Stream::Gzip(encoder) => encoder.get_ref().len(),
            Stream::Lz4(encoder) => encoder.get_ref().len(),
            Stream::Zstd(encoder) => encoder.get_ref().len(),
        }
    }

    /// Ends the stream and returns it.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Stream::None(out) => Ok(out),
            Stream::Gzip(encoder) => encoder.finish(),
            Stream::Lz4(encoder) => encoder.finish().map_err(io::Error::other),
            Stream::Zstd(encoder) => encoder.finish(),
            Stream::Snappy(mut out, mut block) => {
                if !block.is_empty() {
                    put_snappy_block(&mut out, &mut block)?;
                }
                Ok(out)
            }
        }
    }
}

fn put_snappy_block(out: &mut Vec<u8>, block: &mut Vec<u8>) -> io::Result<()> {
    let compressed = snap::raw::Encoder::new().compress_vec(block)?;
    out.extend_from_slice(&(compressed.len() as u32).to_be_bytes());
    out.extend_from_slice(&compressed);
    block.clear();
    Ok(())
}

/// Compresses `bytes` as Kafka's producers do, each type at its default level.
pub fn compress(compression: Compression, bytes: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    if compression == Compression::None {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut compressor = Compressor::new(compression.into())?;
    compressor.write(bytes)?;
    Ok(Cow::Owned(compressor.finish()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 20;

    fn sample() -> Vec<u8> {
        (0..100_000_u32).map(|n| (n % 251) as u8).collect()
    }

    fn compressed(compression: Compression) -> Vec<u8> {
        compress(compression, &sample()).unwrap().into_owned()
    }

    const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    #[test]
    fn what_was_compressed_comes_back() {
        for compression in ALL {
            let bytes = compressed(compression);
            assert_eq!(
                decompress(compression, &bytes, LIMIT).unwrap(),
                sample(),
                "{compression:?}"
            );
        }
        let bare = snap::raw::Encoder::new().compress_vec(&sample()).unwrap();
        assert_eq!(
            decompress(Compression::Snappy, &bare, LIMIT).unwrap(),
            sample()
        );
    }

    #[test]
    fn pieces_of_any_size_are_compressed_at_any_level() {
        let levels = [None, Some(1), Some(9)];
        for (compression, level) in ALL
            .into_iter()
            .flat_map(|each| levels.map(|level| (each, level)))
        {
            for size in [1_000, 32 << 10, 40_000] {
                let mut compressor = Compressor::new(Codec { compression, level }).unwrap();
                for piece in sample().chunks(size) {
                    compressor.write(piece).unwrap();
                }
                let bytes = compressor.finish().unwrap();
                let back = decompress(compression, &bytes, LIMIT).unwrap();
                assert_eq!(back, sample(), "{compression:?} {level:?}");
            }
        }
    }

    #[test]
    fn nothing_expands_past_the_limit() {
        for compression in &ALL[1..] {
            let bytes = compressed(*compression);
            assert_eq!(
                decompress(*compression, &bytes, 99_999),
                Err(Fault::TooLarge { limit: 99_999 }),
                "{compression:?}"
            );
        }
    }

    #[test]
    fn broken_bytes_are_a_fault() {
        for compression in &ALL[1..] {
            let bytes = compressed(*compression);
            let cut = decompress(*compression, &bytes[..bytes.len() / 2], LIMIT);
            assert!(
                matches!(cut, Err(Fault::Decompress(_))),
                "{compression:?}: {cut:?}"
            );
            assert!(
                decompress(*compression, &[7; 100], LIMIT).is_err(),
                "{compression:?}"
            );
        }
    }
}
