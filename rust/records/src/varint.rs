//! Zigzag varints, as in records.

use crate::fault::Fault;

/// Writes a number.
pub fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// How many bytes `put_varint` writes.
pub fn varint_len(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)).cast_unsigned();
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads from the front of a slice; every step checks the remaining length.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        let (&first, rest) = self
            .rest
            .split_first()
            .ok_or(Fault::Malformed("a record ends too early"))?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    pub(crate) fn take(&mut self, size: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or(Fault::Malformed(
            "a length in a record reaches past its end",
        ))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn varlong(&mut self) -> Result<i64, Fault> {
        // most numbers are short
        let value = match *self.rest {
            [first, ref rest @ ..] if first < 0x80 => {
                self.rest = rest;
                u64::from(first)
            }
            [first, second, ref rest @ ..] if second < 0x80 => {
                self.rest = rest;
                u64::from(first & 0x7f) | u64::from(second) << 7
            }
            _ => self.long()?,
        };
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn long(&mut self) -> Result<u64, Fault> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(Fault::Malformed("a number in a record is too long"));
            }
        }
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<i32, Fault> {
        i32::try_from(self.varlong()?)
            .map_err(|_| Fault::Malformed("a number in a record is too large"))
    }

    /// Bytes after their length; `None` for length -1.
    pub(crate) fn field(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        match usize::try_from(self.varint()?) {
            Ok(size) => self.take(size).map(Some),
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        assert_eq!(out.len(), varint_len(value));
        out
    }

    #[test]
    fn numbers_of_every_length_are_read() {
        for bits in 0..63 {
            for value in [
                1_i64 << bits,
                -(1 << bits),
                (1 << bits) - 1,
                i64::MIN,
                i64::MAX,
            ] {
                assert_eq!(Cursor::new(&written(value)).varlong(), Ok(value));
            }
        }
    }

    #[test]
    fn endless_and_oversized_numbers_are_refused() {
        assert!(Cursor::new(&[0xff; 11]).varlong().is_err());
        assert!(Cursor::new(&[0x80]).varlong().is_err());
        assert!(
            Cursor::new(&written(i64::from(i32::MAX) + 1))
                .varint()
                .is_err()
        );
    }
}
