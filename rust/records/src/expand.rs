//! Decompresses records piece by piece, in memory independent of their size.

use std::{
    cmp::Ordering,
    io::{Cursor, Read},
};

use crate::{compression::Compression, fault::Fault};

/// Bytes decompressed at a time.
const PIECE: usize = 32 << 10;
/// The header of snappy-java's framing; version and lowest compatible version follow, four bytes each.
pub(crate) const SNAPPY_JAVA: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const SNAPPY_HEAD: usize = 16;
/// A 3-byte copy yields 64 bytes: no snappy block expands further.
const SNAPPY_RATIO_MAX: usize = 22;
/// Bytes before the flags of an LZ4 frame, and the size of the smallest header.
const LZ4_MAGIC: usize = 4;
const LZ4_HEAD: usize = 7;
/// Flags of an LZ4 frame: blocks are independent, blocks have checksums, the header has the content size, a content
/// checksum follows the last block, the header names a dictionary.
const LZ4_INDEPENDENT: u8 = 0x20;
const LZ4_BLOCK_SUMS: u8 = 0x10;
const LZ4_CONTENT_SIZE: u8 = 0x08;
const LZ4_CONTENT_SUM: u8 = 0x04;
const LZ4_DICTIONARY: u8 = 0x01;
/// Bit of a block's size: it is not compressed.
const LZ4_STORED: u32 = 1 << 31;

/// The most bytes that a batch's records may expand to; far above what clients send.
pub const EXPANDED_BYTES_MAX: usize = 256 << 20;

/// Decompresses one payload. The last piece is returned only if the stream is whole and its checksums match.
pub struct Expander<B: AsRef<[u8]>> {
    source: Source<B>,
    piece: Vec<u8>,
}

enum Source<B: AsRef<[u8]>> {
    Plain(B, usize),
    Gzip(flate2::bufread::MultiGzDecoder<Cursor<B>>),
    Lz4(Box<lz4_flex::frame::FrameDecoder<Cursor<B>>>),
    Zstd(zstd::stream::read::Decoder<'static, Cursor<B>>),
    Snappy(Snappy<B>),
}

impl<B: AsRef<[u8]>> Expander<B> {
    /// Starts decompressing `bytes`.
    ///
    /// # Errors
    ///
    /// Fails if the first bytes are not of this compression.
    pub fn new(compression: Compression, bytes: B) -> Result<Self, Fault> {
        let source = match compression {
            Compression::None => Source::Plain(bytes, 0),
            Compression::Gzip => {
                Source::Gzip(flate2::bufread::MultiGzDecoder::new(Cursor::new(bytes)))
            }
            Compression::Lz4 => {
                let decoder = lz4_flex::frame::FrameDecoder::new(Cursor::new(bytes));
                Source::Lz4(Box::new(decoder))
            }
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(Cursor::new(bytes));
                Source::Zstd(decoder.map_err(broken)?)
            }
            Compression::Snappy => Source::Snappy(Snappy::new(bytes)),
        };
        Ok(Self {
            source,
            piece: Vec::new(),
        })
    }

    /// Whether the payload is uncompressed.
    pub fn is_plain(&self) -> bool {
        matches!(self.source, Source::Plain(..))
    }

    /// The largest size of the next piece.
    pub fn next_size(&self) -> usize {
        match &self.source {
            Source::Snappy(snappy) => snappy.next_size(),
            _ => PIECE,
        }
    }

    /// The next piece; an empty one at the end.
    ///
    /// # Errors
    ///
    /// Fails if the stream is broken or truncated.
    pub fn next_piece(&mut self) -> Result<&[u8], Fault> {
        let size = match &mut self.source {
            Source::Plain(bytes, at) => {
                let bytes: &B = bytes;
                let rest = &bytes.as_ref()[*at..];
                let piece = &rest[..rest.len().min(PIECE)];
                *at += piece.len();
                return Ok(piece);
            }
            Source::Snappy(snappy) => {
                snappy.expand_next(&mut self.piece)?;
                return Ok(&self.piece);
            }
            Source::Gzip(decoder) => fill(decoder, &mut self.piece)?,
            Source::Zstd(decoder) => fill(decoder, &mut self.piece)?,
            Source::Lz4(decoder) => fill(decoder.as_mut(), &mut self.piece)?,
        };
        Ok(&self.piece[..size])
    }
}

pub(crate) fn broken(error: impl std::fmt::Display) -> Fault {
    Fault::Decompress(error.to_string())
}

fn fill(decoder: &mut impl Read, piece: &mut Vec<u8>) -> Result<usize, Fault> {
    piece.resize(PIECE, 0);
    decoder.read(piece).map_err(broken)
}

/// Checks that `bytes` are one whole LZ4 frame that all clients can read: with an end mark, independent blocks, and
/// nothing after it. A decoder checks none of that.
///
/// # Errors
///
/// Fails otherwise.
pub fn check_lz4_frame(bytes: &[u8]) -> Result<(), Fault> {
    let cut = || broken("the LZ4 frame ends too early");
    let flags = *bytes.get(LZ4_MAGIC).ok_or_else(cut)?;
    let has = |flag: u8, size: usize| if flags & flag == 0 { 0 } else { size };
    if has(LZ4_INDEPENDENT, 1) == 0 {
        return Err(broken("the blocks of the LZ4 frame depend on each other"));
    }
    let mut at = LZ4_HEAD + has(LZ4_CONTENT_SIZE, 8) + has(LZ4_DICTIONARY, 4);
    loop {
        let rest = bytes.get(at..).ok_or_else(cut)?;
        let (size, _) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let size = (u32::from_le_bytes(*size) & !LZ4_STORED) as usize;
        at += 4;
        if size == 0 {
            break;
        }
        at += size + has(LZ4_BLOCK_SUMS, 4);
    }
    match (at + has(LZ4_CONTENT_SUM, 4)).cmp(&bytes.len()) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(cut()),
        Ordering::Less => Err(broken("bytes follow the LZ4 frame")),
    }
}

/// Snappy: one bare block, or many in the framing of snappy-java, whose header may be repeated between them.
struct Snappy<B> {
    bytes: B,
    at: usize,
    is_framed: bool,
}

impl<B: AsRef<[u8]>> Snappy<B> {
    fn new(bytes: B) -> Self {
        let is_framed = bytes.as_ref().starts_with(&SNAPPY_JAVA);
        Self {
            bytes,
            at: 0,
            is_framed,
        }
    }

    /// The next block, and its end; `None` at the end.
    fn block(&self) -> Result<Option<(&[u8], usize)>, Fault> {
        let bytes = self.bytes.as_ref();
        if !self.is_framed {
            return Ok((self.at == 0).then_some((bytes, usize::MAX)));
        }
        let mut at = self.at;
        while bytes[at..].starts_with(&SNAPPY_JAVA) {
            at += SNAPPY_HEAD;
            if at > bytes.len() {
                return Err(broken("the head of the snappy stream ends too early"));
            }
        }
        if at == bytes.len() {
            return Ok(None);
        }
        let cut = || broken("a block ends too early");
        let (size, rest) = bytes[at..].split_first_chunk::<4>().ok_or_else(cut)?;
        let size = u32::from_be_bytes(*size) as usize;
        let block = rest.get(..size).ok_or_else(cut)?;
        Ok(Some((block, at + 4 + size)))
    }

    fn next_size(&self) -> usize {
        let block = self.block().ok().flatten();
        block.map_or(0, |(block, _)| expanded_size(block).unwrap_or(0))
    }

    /// Decompresses the next non-empty block; leaves `out` empty at the end.
    fn expand_next(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        out.clear();
        while out.is_empty() {
            let Some((block, end)) = self.block()? else {
                return Ok(());
            };
            out.resize(expanded_size(block)?, 0);
            let size = snap::raw::Decoder::new()
                .decompress(block, out)
                .map_err(broken)?;
            out.truncate(size);
            self.at = end;
        }
        Ok(())
    }
}

/// The uncompressed size that a block claims, if it is possible.
fn expanded_size(block: &[u8]) -> Result<usize, Fault> {
    let size = snap::raw::decompress_len(block).map_err(broken)?;
    if size > block.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return Err(broken("a block claims more than it can expand to"));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compress, decompress};

    const COMPRESSIONS: [Compression; 4] = [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    fn sample() -> Vec<u8> {
        (0..200_000_u32).map(|n| (n % 251) as u8).collect()
    }

    fn expanded(compression: Compression, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut expander = Expander::new(compression, bytes)?;
        let mut out = Vec::new();
        loop {
            let announced = expander.next_size();
            let piece = expander.next_piece()?;
            assert!(piece.len() <= announced, "{compression:?}");
            if piece.is_empty() {
                return Ok(out);
            }
            out.extend_from_slice(piece);
        }
    }

    #[test]
    fn pieces_are_no_larger_than_announced_and_give_the_whole() {
        for compression in COMPRESSIONS.into_iter().chain([Compression::None]) {
            let sample = sample();
            let bytes = compress(compression, &sample).unwrap();
            assert_eq!(expanded(compression, &bytes), Ok(sample), "{compression:?}");
        }
        let bare = snap::raw::Encoder::new().compress_vec(&sample()).unwrap();
        assert_eq!(expanded(Compression::Snappy, &bare), Ok(sample()));
    }

    #[test]
    fn a_stream_that_is_cut_off_anywhere_does_not_end() {
        let small = &sample()[..600];
        for compression in COMPRESSIONS {
            let bytes = compress(compression, small).unwrap();
            for cut in 0..bytes.len() {
                let cut_off = &bytes[..cut];
                let whole = if compression == Compression::Lz4 {
                    check_lz4_frame(cut_off).and_then(|()| expanded(compression, cut_off))
                } else {
                    expanded(compression, cut_off)
                };
                let empty = Ok(Vec::new());
                assert!(
                    whole.is_err() || whole == empty,
                    "{compression:?} cut to {cut}"
                );
            }
        }
    }

    #[test]
    fn streams_one_after_the_other_are_one_where_clients_read_them_so() {
        let (first, second) = (&sample()[..300], &sample()[300..900]);
        for compression in [Compression::Gzip, Compression::Snappy, Compression::Zstd] {
            let bytes =
                [first, second].map(|part| compress(compression, part).unwrap().into_owned());
            let whole = expanded(compression, &bytes.concat());
            assert_eq!(whole.as_deref(), Ok(&sample()[..900]), "{compression:?}");
        }
        let twice = compress(Compression::Lz4, first).unwrap().repeat(2);
        assert!(check_lz4_frame(&twice).is_err());
    }

    #[test]
    fn a_block_of_snappy_that_claims_too_much_takes_no_memory() {
        let claims_2_gb = [0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0];
        let mut expander = Expander::new(Compression::Snappy, &claims_2_gb[..]).unwrap();
        assert_eq!(expander.next_size(), 0);
        assert!(expander.next_piece().is_err());
        let zeros = vec![0; 1 << 20];
        let densest = compress(Compression::Snappy, &zeros).unwrap();
        assert!(decompress(Compression::Snappy, &densest, 1 << 20).is_ok());
    }
}
