//! Object names, relative to the prefix of the bucket's URL.
//!
//! Numbers have 16 hexadecimal digits and epochs 8, so that names sort like numbers.

use crate::checkpoint::Segment;

const COMPACT: &str = "compact";
const WRITTEN: &str = "journal";

/// Identifies the home: format and cluster ID. Created once, never changed.
pub const FORMAT: &str = "format";
/// Prefix of journal objects.
pub const JOURNAL: &str = "journal/";
/// Prefix of the parts of sealed segments.
pub const SEGMENTS: &str = "segments/";
/// Prefix of checkpoints.
pub const CHECKPOINTS: &str = "checkpoints/";
/// Prefix of the objects in which brokers describe themselves, the only ones that are overwritten.
pub const NODES: &str = "nodes/";
/// Prefix of checkpoints that an operator keeps.
pub const PINS: &str = "pins/";
/// Prefix of objects that a probe creates and deletes.
pub const PROBE: &str = "probe/";

/// Prefixes of all that a home or a copy keeps besides [`FORMAT`]; what refers to others comes before them.
pub const KEPT: [&str; 5] = [NODES, CHECKPOINTS, PINS, SEGMENTS, JOURNAL];

/// Return the name of the journal object at a place.
pub fn journal(place: u64) -> String {
    format!("{JOURNAL}{place:016x}")
}

/// Return the name of the checkpoint of the state before a place, made in an epoch.
pub fn checkpoint(place: u64, epoch: u32) -> String {
    format!("{CHECKPOINTS}{place:016x}-{epoch:08x}")
}

/// Return the name of the manifest of a sealed segment.
pub fn manifest(segment: Segment) -> String {
    let kind = if segment.is_compact { COMPACT } else { WRITTEN };
    format!("{SEGMENTS}{:016x}-{:08x}.{kind}", segment.id, segment.epoch)
}

/// Return the name of a part of a sealed segment.
pub fn part(segment: Segment, part: u32) -> String {
    format!("{}.{part:06x}", manifest(segment))
}

/// Return the segment in the name of a manifest or a part, with the number of the part; None for any other name.
pub fn parse_segment(name: &str) -> Option<(Segment, Option<u32>)> {
    let (id, rest) = name.strip_prefix(SEGMENTS)?.split_once('-')?;
    let (epoch, rest) = rest.split_once('.')?;
    let (kind, part) = match rest.split_once('.') {
        Some((kind, part)) => (kind, Some(number(part, 6)? as u32)),
        None => (rest, None),
    };
    let is_compact = match kind {
        COMPACT => true,
        WRITTEN => false,
        _ => return None,
    };
    let segment = Segment {
        id: number(id, 16)?,
        epoch: number(epoch, 8)? as u32,
        is_compact,
    };
    Some((segment, part))
}

/// Return the name of the object in which a broker describes itself.
pub fn node(id: i32) -> String {
    format!("{NODES}{id}")
}

/// Return the node that an object describes; None if no broker gives an object that name.
#[must_use]
pub fn parse_node(name: &str) -> Option<i32> {
    let id = name.strip_prefix(NODES)?.parse().ok()?;
    (id >= 0 && node(id) == name).then_some(id)
}

/// Return the name of a checkpoint kept under a name of the operator's choice.
pub fn pin(name: &str) -> String {
    format!("{PINS}{name}")
}

/// Return the name of an object for a probe, from a random number.
pub fn probe(random: u128) -> String {
    format!("{PROBE}{random:032x}")
}

/// Return the place in the name of a journal object, or None for any other name.
pub fn parse_journal(name: &str) -> Option<u64> {
    number(name.strip_prefix(JOURNAL)?, 16)
}

/// Return place and epoch in the name of a checkpoint, or None for any other name.
pub fn parse_checkpoint(name: &str) -> Option<(u64, u32)> {
    let (place, epoch) = name.strip_prefix(CHECKPOINTS)?.split_once('-')?;
    Some((number(place, 16)?, number(epoch, 8)? as u32))
}

/// Parse hexadecimal digits in this module's format: lower case, and exactly `count`.
pub(crate) fn number(digits: &str, count: usize) -> Option<u64> {
    let well_formed = digits.len() == count
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|_| well_formed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_numbers_do() {
        let places = [1, 2, 15, 16, 255, 4096, u64::MAX];
        assert!(places.map(journal).is_sorted());
        assert!(places.map(|place| checkpoint(place, 3)).is_sorted());
    }

    #[test]
    fn what_is_written_is_read_back() {
        for id in [0, 7, i32::MAX] {
            assert_eq!(parse_node(&node(id)), Some(id));
        }
        for name in ["nodes/07", "nodes/-1", "nodes/", "nodes/2147483648", "7"] {
            assert_eq!(parse_node(name), None, "{name}");
        }
        for place in [0, 1, 0xabc, u64::MAX] {
            assert_eq!(parse_journal(&journal(place)), Some(place));
            let name = checkpoint(place, 0xdead_beef);
            assert_eq!(parse_checkpoint(&name), Some((place, 0xdead_beef)));
            for is_compact in [false, true] {
                let segment = Segment {
                    id: place,
                    epoch: 7,
                    is_compact,
                };
                assert_eq!(parse_segment(&manifest(segment)), Some((segment, None)));
                assert_eq!(parse_segment(&part(segment, 3)), Some((segment, Some(3))));
            }
        }
    }

    #[test]
    fn other_names_are_no_objects_of_ours() {
        for name in [
            "journal/1",
            "journal/000000000000000A",
            "journal/+00000000000000a",
            "journal/00000000000000001",
            "checkpoints/0000000000000001",
            "checkpoints/0000000000000001-1",
            "elsewhere/0000000000000001",
            "",
        ] {
            assert_eq!(parse_journal(name), None, "{name}");
            assert_eq!(parse_checkpoint(name), None, "{name}");
        }
    }
}
