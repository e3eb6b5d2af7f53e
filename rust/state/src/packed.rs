//! Compact state batches: a broker keeps those of all its share partitions.

use sharecore_engine::{RecordState, StateBatch};

const STATE_BITS: u32 = 3;

/// Ascending batches without overlaps, most of them encoded in three bytes.
///
/// ```text
/// each batch   offsets since the one before   offsets after its first   delivery count and state
///              varint                         varint                    varint
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    count: usize,
}

impl Packed {
    /// Packs ascending batches without overlaps.
    pub(crate) fn new(batches: &[StateBatch]) -> Self {
        let mut bytes = Vec::with_capacity(4 * batches.len());
        let mut next = 0_i64;
        for batch in batches {
            put(&mut bytes, batch.first.wrapping_sub(next).cast_unsigned());
            put(
                &mut bytes,
                batch.last.wrapping_sub(batch.first).cast_unsigned(),
            );
            let state = u64::from(batch.state.id());
            put(
                &mut bytes,
                u64::from(batch.delivery_count) << STATE_BITS | state,
            );
            next = batch.last.wrapping_add(1);
        }
        Self {
            bytes: bytes.into_boxed_slice(),
            count: batches.len(),
        }
    }

    /// The number of batches.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The batches.
    pub(crate) fn unpack(&self) -> Vec<StateBatch> {
        let mut rest = &self.bytes[..];
        let mut next = 0_i64;
        let mut batches = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let first = next.wrapping_add(take(&mut rest).cast_signed());
            let last = first.wrapping_add(take(&mut rest).cast_signed());
            let rank = take(&mut rest);
            batches.push(StateBatch {
                first,
                last,
                state: RecordState::from_id((rank & ((1 << STATE_BITS) - 1)) as u8)
                    .expect("a state that was packed"),
                delivery_count: (rank >> STATE_BITS) as u16,
            });
            next = last.wrapping_add(1);
        }
        batches
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(rest: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, behind) = rest.split_first().expect("as many bytes as were packed");
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(first: i64, last: i64, state: RecordState, delivery_count: u16) -> StateBatch {
        StateBatch {
            first,
            last,
            state,
            delivery_count,
        }
    }

    #[test]
    fn what_is_packed_comes_out() {
        use RecordState::{Acknowledged, Archived, Archiving, Available};
        let batches = [
            batch(0, 0, Available, 1),
            batch(1, 130, Acknowledged, 15),
            batch(1 << 40, (1 << 40) + 5, Archived, 16),
            batch(i64::MAX - 9, i64::MAX, Archiving, i16::MAX as u16),
        ];
        for some in [&batches[..], &batches[1..2], &[]] {
            assert_eq!(Packed::new(some).unpack(), some);
        }
        assert_eq!(Packed::new(&batches[..1]).bytes.len(), 3);
    }
}
