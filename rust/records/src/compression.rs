//! The compressions of record batches.

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
    /// Blocks in the framing that snappy-java writes, or one bare block.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// The type of a number.
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
}

/// Expands `bytes` to at most `limit` bytes.
///
/// # Errors
///
/// The bytes are not one whole stream of this compression, or expand further.
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

/// Compresses `bytes` as Kafka's producers do, each type at its usual level.
pub fn compress(compression: Compression, bytes: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    let mut out = Vec::with_capacity(bytes.len() / 2 + 64);
    match compression {
        Compression::None => return Ok(Cow::Borrowed(bytes)),
        Compression::Gzip => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(&mut out, level);
            encoder.write_all(bytes)?;
            encoder.finish()?;
        }
        Compression::Lz4 => {
            // what all clients take: blocks that stand alone, 64 KB each
            let info = lz4_flex::frame::FrameInfo::new()
                .block_mode(lz4_flex::frame::BlockMode::Independent)
                .block_size(lz4_flex::frame::BlockSize::Max64KB);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, &mut out);
            encoder.write_all(bytes)?;
            encoder.finish().map_err(io::Error::other)?;
        }
        Compression::Zstd => zstd::stream::copy_encode(bytes, &mut out, 0)?,
        Compression::Snappy => {
            out.extend_from_slice(&SNAPPY_JAVA);
            out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
            for chunk in bytes.chunks(SNAPPY_BLOCK) {
                let block = snap::raw::Encoder::new().compress_vec(chunk)?;
                out.extend_from_slice(&(block.len() as u32).to_be_bytes());
                out.extend_from_slice(&block);
            }
        }
    }
    Ok(Cow::Owned(out))
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
