//! Bytes of a message, read front to back.

use std::borrow::Cow;
use std::fmt;

/// The bytes are not a valid message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub Cow<'static, str>);

impl Malformed {
    /// A length beyond the end of the bytes.
    pub fn past_the_end(what: &str) -> Self {
        Malformed(Cow::Owned(format!("{what} reaches past the end")))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// A message, and the position in it.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    /// Reads `data` from `at`.
    pub fn new(data: &'a [u8], at: usize) -> Self {
        Input { data, at }
    }

    /// The position of the next read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.data.len().saturating_sub(self.at)
    }

    /// The next `N` bytes, of a fixed-size type.
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self
            .data
            .get(self.at..)
            .and_then(|rest| rest.first_chunk::<N>());
        let bytes = bytes.ok_or(Malformed(Cow::Borrowed("the message ends too early")))?;
        self.at += N;
        Ok(*bytes)
    }

    /// The next `size` bytes; `what` names them in an error.
    pub fn sized(&mut self, size: usize, what: &str) -> Result<&'a [u8], Malformed> {
        if size > self.left() {
            return Err(Malformed::past_the_end(what));
        }
        let taken = &self.data[self.at..self.at + size];
        self.at += size;
        Ok(taken)
    }

    /// An unsigned varint of at most five bytes.
    pub fn uvarint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let [byte] = self.fixed()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed(Cow::Borrowed("varint is too long")))
    }

    /// Skips a section of tagged fields.
    pub fn skip_tagged_fields(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.uvarint()? {
            self.uvarint()?;
            self.skip_tagged_field()?;
        }
        Ok(())
    }

    /// Skips one tagged field's size and bytes.
    pub(crate) fn skip_tagged_field(&mut self) -> Result<(), Malformed> {
        let size = self.uvarint()? as usize;
        self.sized(size, "tagged field").map(|_| ())
    }
}
