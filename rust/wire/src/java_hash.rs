/// Java's `String.hashCode`, which Kafka uses to assign partitions: over UTF-16 code units, big endian, continuing from
/// the hash `before`. A trailing odd byte is ignored.
pub fn java_hash(units: &[u8], before: i32) -> i32 {
    let (units, _) = units.as_chunks::<2>();
    units.iter().fold(before, |hash, unit| {
        hash.wrapping_mul(31)
            .wrapping_add(i32::from(u16::from_be_bytes(*unit)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> i32 {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        java_hash(&units, 0)
    }

    #[test]
    fn as_java_computes_it() {
        assert_eq!(of(""), 0);
        assert_eq!(of("hello"), 99_162_322);
        assert_eq!(of("polygenelubricants"), i32::MIN);
        assert_eq!(of("𝒳"), 1_772_318);
    }

    #[test]
    fn what_stands_in_front_may_be_hashed_before() {
        let units: Vec<u8> = "lo".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(java_hash(&units, of("hel")), of("hello"));
    }
}
