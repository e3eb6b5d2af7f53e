//! Zigzag varints, as in record batches.

pub(crate) use sharecore_records::put_varint;

/// Takes a number from the front; `None` if the bytes are incomplete.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_read_as_it_was_written(value: i64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), sharecore_records::varint_len(value));
            prop_assert_eq!(take_varint(&mut out.as_slice()), Some(value));
            out.pop();
            prop_assert_eq!(take_varint(&mut out.as_slice()), None);
        }
    }
}
