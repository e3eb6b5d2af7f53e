//! Keys of the records: type, group id, topic id, partition.

use crate::{fault::RecordFault, value::Kind};

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TOPIC_ID: usize = 16;
/// Topic id and partition.
const TAIL: usize = TOPIC_ID + 4;

/// A share partition's key; the bytes after the type are the same for a snapshot and an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<'a> {
    /// The share group.
    pub group: &'a str,
    /// The topic's ID.
    pub topic_id: [u8; TOPIC_ID],
    /// The partition.
    pub partition: i32,
}

impl<'a> Key<'a> {
    /// Reads the type and, if the type is known, the rest.
    pub fn read(bytes: &'a [u8]) -> Result<(Kind, Self), RecordFault> {
        let (kind, rest) = split_kind(bytes)?;
        Ok((kind, Self::read_rest(rest)?))
    }

    /// Reads the part after the type.
    pub(crate) fn read_rest(rest: &'a [u8]) -> Result<Self, RecordFault> {
        let (size, rest) = rest
            .split_first_chunk()
            .ok_or(RecordFault::Key("it ends too early"))?;
        let size = usize::try_from(i16::from_be_bytes(*size))
            .map_err(|_| RecordFault::Key("the group id has a negative length"))?;
        let (group, rest) = rest
            .split_at_checked(size)
            .ok_or(RecordFault::Key("the group id reaches past the end"))?;
        let rest: &[u8; TAIL] = rest
            .try_into()
            .map_err(|_| RecordFault::Key("too few or too many bytes behind the group id"))?;
        let (topic_id, partition) = rest
            .split_first_chunk::<TOPIC_ID>()
            .expect("the tail is longer than a topic id");
        Ok(Self {
            group: std::str::from_utf8(group)
                .map_err(|_| RecordFault::Key("the group id is not UTF-8"))?,
            topic_id: *topic_id,
            partition: i32::from_be_bytes(partition.try_into().expect("four bytes are left")),
        })
    }

    /// The topic ID as Kafka prints it: URL-safe base64 without padding.
    pub fn topic_id_text(&self) -> [u8; 22] {
        let mut text = [0; 22];
        for (at, character) in text.iter_mut().enumerate() {
            let (byte, bit) = (at * 6 / 8, at * 6 % 8);
            let next = self.topic_id.get(byte + 1).copied().unwrap_or_default();
            let pair = u16::from_be_bytes([self.topic_id[byte], next]);
            *character = BASE64[usize::from(pair << bit >> 10)];
        }
        text
    }
}

/// The type of a key, and the rest, which identifies the share partition.
pub(crate) fn split_kind(bytes: &[u8]) -> Result<(Kind, &[u8]), RecordFault> {
    let (id, rest) = bytes
        .split_first_chunk()
        .ok_or(RecordFault::Key("there is none"))?;
    let id = i16::from_be_bytes(*id);
    let kind = Kind::from_id(id).ok_or(RecordFault::Type(id))?;
    Ok((kind, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_ids_print_as_kafka_prints_them() {
        let key = |topic_id| Key {
            group: "",
            topic_id,
            partition: 0,
        };
        assert_eq!(&key([0; 16]).topic_id_text(), b"AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(&key([255; 16]).topic_id_text(), b"_____________________w");
        let mut count = [0; 16];
        (0_u8..16).for_each(|at| count[usize::from(at)] = at);
        assert_eq!(&key(count).topic_id_text(), b"AAECAwQFBgcICQoLDA0ODw");
    }

    #[test]
    fn a_key_has_all_of_its_bytes_and_no_more() {
        let mut bytes = vec![0, 1, 0, 2, b'g', 0xc3];
        bytes.extend([7; 16]);
        bytes.extend([0, 0, 0, 9]);
        assert_eq!(
            Key::read(&bytes),
            Err(RecordFault::Key("the group id is not UTF-8"))
        );
        bytes[5] = b'h';
        let (kind, key) = Key::read(&bytes).unwrap();
        assert_eq!((kind, key.group, key.partition), (Kind::Update, "gh", 9));
        for size in 0..bytes.len() {
            assert!(matches!(
                Key::read(&bytes[..size]),
                Err(RecordFault::Key(_))
            ));
        }
        bytes.push(0);
        assert!(Key::read(&bytes).is_err());
        assert_eq!(Key::read(&[0, 2]), Err(RecordFault::Type(2)));
    }
}
