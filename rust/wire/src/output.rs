//! Output of a message.

/// Appends Kafka's primitive types to a buffer.
pub trait Output {
    /// An unsigned varint.
    fn uvarint(&mut self, value: usize);
    /// The length of a string, bytes or an array, in the encoding of the schema's version; `None` for null.
    fn length(&mut self, length: Option<usize>, flexible: bool, short: bool) -> bool;
}

impl Output for Vec<u8> {
    fn uvarint(&mut self, mut value: usize) {
        while value > 0x7f {
            self.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    /// `short`: two bytes if lengths are not compact, as for strings. Returns false, and writes nothing, if the length
    /// does not fit.
    fn length(&mut self, length: Option<usize>, flexible: bool, short: bool) -> bool {
        if flexible {
            self.uvarint(length.map_or(0, |length| length + 1));
        } else if short {
            let Ok(length) = length.map_or(Ok(-1), i16::try_from) else {
                return false;
            };
            self.extend_from_slice(&length.to_be_bytes());
        } else {
            let Ok(length) = length.map_or(Ok(-1), i32::try_from) else {
                return false;
            };
            self.extend_from_slice(&length.to_be_bytes());
        }
        true
    }
}
