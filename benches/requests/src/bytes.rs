//! Kafka's primitive types, to bytes and from them.

/// Writes at the end.
pub trait Put {
    fn int<const N: usize>(&mut self, bytes: [u8; N]);
    fn uvarint(&mut self, value: usize);
    fn string(&mut self, text: &str);
}

impl Put for Vec<u8> {
    /// Big-endian: `out.int(5i32.to_be_bytes())`.
    fn int<const N: usize>(&mut self, bytes: [u8; N]) {
        self.extend_from_slice(&bytes);
    }

    fn uvarint(&mut self, mut value: usize) {
        while value > 0x7f {
            self.push((value & 0x7f | 0x80) as u8);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn string(&mut self, text: &str) {
        self.uvarint(text.len() + 1);
        self.extend_from_slice(text.as_bytes());
    }
}

/// Reads an answer from front to back; a broker under measurement is trusted to send whole ones.
pub struct Cursor<'a> {
    pub rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn bytes(&mut self, size: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(size);
        self.rest = rest;
        taken
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().expect("as long as asked for")
    }

    pub fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.array())
    }

    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.array())
    }

    pub fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.array())
    }

    pub fn uvarint(&mut self) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.bytes(1)[0];
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    /// A compact string, bytes or records; empty where there is none.
    pub fn sized(&mut self) -> &'a [u8] {
        let size = self.uvarint();
        self.bytes(size.saturating_sub(1))
    }

    /// The length of a compact array.
    pub fn length(&mut self) -> usize {
        self.uvarint().saturating_sub(1)
    }

    pub fn tags(&mut self) {
        for _ in 0..self.uvarint() {
            self.uvarint();
            let size = self.uvarint();
            self.bytes(size);
        }
    }
}
