//! Reads delivery times and keys from records' headers and timestamps.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use sharecore_engine::{Bug, Entry, Key, Spec, is_planted};
use sharecore_records::{Batch, Batches, Fault, Record, TimestampType};

use crate::EXPANDED_BYTES_MAX;

/// The most digits of a number.
const DIGITS_MAX: usize = 19;

/// Seeded when the process starts, so that nobody outside can construct two keys with the same digest.
static DRAWN: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The times and keys of record batches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Ascending; equal neighbors share one.
    pub entries: Vec<Entry>,
    /// Headers that are not valid numbers and are ignored.
    pub unreadable_headers: u64,
    /// Batches that cannot be expanded; their records are delivered as if they had no headers.
    pub unreadable_batches: u64,
    /// Bytes of expanded records read.
    pub expanded_bytes: usize,
}

/// Reads the times and keys of the records of whole batches.
pub fn survey(bytes: &[u8], spec: &Spec, wall_ms: i64) -> Survey {
    let mut survey = Survey::default();
    for batch in Batches::new(bytes) {
        let before = survey.entries.len();
        if survey.batch(&batch, spec, wall_ms).is_err() {
            survey.entries.truncate(before);
            survey.push(silent(batch.header.base_offset));
            survey.unreadable_batches += 1;
        }
    }
    survey
}

impl Survey {
    fn push(&mut self, entry: Entry) {
        match self.entries.last() {
            Some(last) if last.is_alike(&entry) => {}
            _ => self.entries.push(entry),
        }
    }

    fn batch(&mut self, batch: &Batch<'_>, spec: &Spec, wall_ms: i64) -> Result<(), Fault> {
        let header = &batch.header;
        let first = header.base_offset;
        if header.is_control() {
            self.push(silent(first));
            return Ok(());
        }
        if spec.deliver_at_header.is_empty() && spec.key.is_none() {
            // a record's own time to live can only shorten the group's
            let expires_ms = expiry(spec.ttl_ms, header.max_timestamp, Entry::AT_ONCE);
            let is_alike = header.timestamp_type() == TimestampType::LogAppendTime
                && spec.ttl_header.is_empty();
            if is_alike || expires_ms <= wall_ms {
                self.push(Entry {
                    expires_ms,
                    ..silent(first)
                });
                return Ok(());
            }
        }
        let expanded = batch.expand(EXPANDED_BYTES_MAX)?;
        self.expanded_bytes += expanded.len();
        let mut next = first;
        for record in batch.records(&expanded) {
            let record = record?;
            let not_before_ms = self.number(&record, &spec.deliver_at_header)?;
            let own_ttl_ms = self.number(&record, &spec.ttl_header)?;
            let ttl_ms = [spec.ttl_ms, own_ttl_ms].into_iter().flatten().min();
            let not_before_ms = not_before_ms.unwrap_or(Entry::AT_ONCE);
            let expires_ms = expiry(ttl_ms, record.timestamp, not_before_ms);
            // offsets before the first record go with it; descending offsets are corrected here
            let offset = if next == first {
                first
            } else {
                record.offset.max(next)
            };
            self.push(Entry {
                offset,
                not_before_ms,
                expires_ms,
                digest: digest(&record, spec)?,
            });
            next = offset.max(record.offset).saturating_add(1);
        }
        if next == first {
            self.push(silent(first));
        }
        Ok(())
    }

    /// The number in the last header with this name; an invalid number counts as no header.
    fn number(&mut self, record: &Record<'_>, name: &[u8]) -> Result<Option<i64>, Fault> {
        if name.is_empty() || record.headers.is_empty() {
            return Ok(None);
        }
        let Some(value) = record.headers.last_value(name)? else {
            return Ok(None);
        };
        let number = value.and_then(number);
        self.unreadable_headers += u64::from(number.is_none());
        Ok(number)
    }
}

/// An entry for a record without times and key.
fn silent(offset: i64) -> Entry {
    Entry {
        offset,
        not_before_ms: Entry::AT_ONCE,
        expires_ms: Entry::NEVER,
        digest: 0,
    }
}

/// The digest of a record's key; 0 without a key, or if keys do not matter.
fn digest(record: &Record<'_>, spec: &Spec) -> Result<u64, Fault> {
    let key = match &spec.key {
        None => None,
        Some(Key::Own) => record.key,
        Some(Key::Header(name)) => record.headers.last_value(name)?.flatten(),
    };
    let key = key.or(is_planted(Bug::NullIsEmpty).then_some(&[]));
    Ok(key.map_or(0, |key| DRAWN.hash_one(key).max(1)))
}

/// A number in ASCII digits; values beyond the largest time are clamped.
fn number(value: &[u8]) -> Option<i64> {
    let is_number = (1..=DIGITS_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(value).ok().filter(|_| is_number)?;
    let number: u64 = digits.parse().ok()?;
    Some(i64::try_from(number).unwrap_or(i64::MAX))
}

/// When a record expires; without a timestamp, its age counts from its delivery time.
fn expiry(ttl_ms: Option<i64>, timestamp: i64, not_before_ms: i64) -> i64 {
    let from_ms = timestamp.max(not_before_ms);
    match ttl_ms {
        Some(ttl_ms) if from_ms >= 0 => from_ms.saturating_add(ttl_ms),
        _ => Entry::NEVER,
    }
}

#[cfg(test)]
mod tests {
    use sharecore_records::{LocalRecord, headed_batch};

    use super::*;

    type Header = (&'static str, Option<&'static [u8]>);

    /// A batch at time 1000 with a record per list of headers.
    fn batch(records: &[&[Header]]) -> Vec<u8> {
        let value: LocalRecord<'_> = (None, Some(b"v"));
        let records: Vec<_> = records.iter().map(|headers| (value, *headers)).collect();
        headed_batch(&records, 1000)
    }

    fn spec(deliver_at: &str, ttl_ms: Option<i64>, ttl: &str) -> Spec {
        Spec {
            id: 0,
            deliver_at_header: deliver_at.into(),
            ttl_ms,
            ttl_header: ttl.into(),
            key: None,
        }
    }

    /// Offset, delivery time, expiry.
    fn entries(survey: &Survey) -> Vec<(i64, i64, i64)> {
        let entries = survey.entries.iter();
        entries
            .map(|each| (each.offset, each.not_before_ms, each.expires_ms))
            .collect()
    }

    const AT: (&str, Option<&[u8]>) = ("at", Some(b"5000"));

    #[test]
    fn neighbors_that_say_the_same_share_an_entry() {
        let bytes = batch(&[&[], &[], &[AT], &[AT, ("x", None)], &[]]);
        let found = survey(&bytes, &spec("at", None, ""), 0);
        let none = (Entry::AT_ONCE, Entry::NEVER);
        let wanted = [(0, none.0, none.1), (2, 5000, none.1), (4, none.0, none.1)];
        assert_eq!(entries(&found), wanted);
        assert_eq!((found.unreadable_headers, found.unreadable_batches), (0, 0));
    }

    #[test]
    fn a_time_to_live_counts_from_the_later_of_timestamp_and_delivery_time() {
        let own: Header = ("ttl", Some(b"70"));
        let long: Header = ("ttl", Some(b"999"));
        let bytes = batch(&[&[], &[AT], &[own], &[long], &[AT, own]]);
        let found = survey(&bytes, &spec("at", Some(100), "ttl"), 0);
        let expiries: Vec<_> = found.entries.iter().map(|each| each.expires_ms).collect();
        assert_eq!(expiries, [1100, 5100, 1070, 1100, 5070]);
    }

    #[test]
    fn a_header_that_is_no_number_counts_as_none_and_the_last_of_a_name_counts() {
        for value in [
            None,
            Some(&b""[..]),
            Some(b"-1"),
            Some(b"1.5"),
            Some(b"12345678901234567890"),
        ] {
            let bytes = batch(&[&[AT, ("at", value)]]);
            let found = survey(&bytes, &spec("at", None, ""), 0);
            assert_eq!(
                entries(&found),
                [(0, Entry::AT_ONCE, Entry::NEVER)],
                "{value:?}"
            );
            assert_eq!(found.unreadable_headers, 1);
        }
        let bytes = batch(&[&[("at", Some(b"x")), ("at", Some(b"9999999999999999999"))]]);
        let found = survey(&bytes, &spec("at", None, ""), 0);
        assert_eq!(entries(&found), [(0, i64::MAX, Entry::NEVER)]);
    }

    #[test]
    fn a_batch_that_cannot_be_read_says_nothing_and_is_counted() {
        let mut bytes = batch(&[&[AT], &[AT]]);
        let whole = bytes.clone();
        let end = bytes.len();
        bytes[end - 1] = 0xff;
        bytes[61] = 0xff;
        bytes.extend(whole);
        let found = survey(&bytes, &spec("at", None, ""), 0);
        assert_eq!((found.unreadable_headers, found.unreadable_batches), (0, 1));
        let wanted = [(0, Entry::AT_ONCE, Entry::NEVER), (0, 5000, Entry::NEVER)];
        assert_eq!(entries(&found), wanted);
    }

    #[test]
    fn a_batch_that_is_too_old_as_a_whole_is_not_expanded() {
        let mut bytes = batch(&[&[], &[]]);
        bytes[61] = 0xff;
        let found = survey(&bytes, &spec("", Some(100), ""), 1100);
        assert_eq!(entries(&found), [(0, Entry::AT_ONCE, 1100)]);
        assert_eq!((found.unreadable_batches, found.expanded_bytes), (0, 0));
    }

    type Keyed<'a> = (Option<&'a [u8]>, &'a [(&'a str, Option<&'a [u8]>)]);

    /// First offset of each entry, with its digest.
    fn keys(records: &[Keyed<'_>], key: Key) -> Vec<(i64, u64)> {
        let records: Vec<_> = records
            .iter()
            .map(|&(key, headers)| ((key, Some(&b"v"[..])), headers))
            .collect();
        let by_key = Spec {
            key: Some(key),
            ..spec("", None, "")
        };
        let found = survey(&headed_batch(&records, 1000), &by_key, 0);
        let entries = found.entries.iter();
        entries.map(|entry| (entry.offset, entry.digest)).collect()
    }

    #[test]
    fn neighbors_with_the_same_key_share_an_entry_and_an_empty_key_is_a_key() {
        let records: [Option<&[u8]>; 6] =
            [None, None, Some(b"a"), Some(b"a"), Some(b""), Some(b"a")];
        let found = keys(&records.map(|key| (key, &[][..])), Key::Own);
        let [none, a, empty, again] = found[..] else {
            panic!("four entries: {found:?}");
        };
        assert_eq!((none, a.0, empty.0, again.0), ((0, 0), 2, 4, 5));
        assert_eq!(a.1, again.1);
        assert_ne!(a.1, empty.1);
        assert!(a.1 != 0 && empty.1 != 0);
    }

    #[test]
    fn the_last_header_of_the_name_is_the_key() {
        let (a, b) = (Some(&b"a"[..]), Some(&b"b"[..]));
        let records: [Keyed<'_>; 4] = [
            (a, &[("k", a), ("k", b)]),
            (a, &[("other", b)]),
            (a, &[("k", None)]),
            (None, &[("k", b), ("z", a)]),
        ];
        let found = keys(&records, Key::Header(b"k".to_vec()));
        let [first, none, last] = found[..] else {
            panic!("three entries: {found:?}");
        };
        let message = "no header, and one without a value, are no key";
        assert_eq!((none, last.0), ((1, 0), 3), "{message}");
        assert_eq!(first.1, last.1);
    }

    #[test]
    fn keys_are_read_where_a_batch_has_one_time() {
        let by_key = Spec {
            key: Some(Key::Own),
            ..spec("", Some(100), "")
        };
        let value = (Some(&b"a"[..]), Some(&b"v"[..]));
        let bytes = headed_batch(&[(value, &[][..])], 1000);
        for wall_ms in [0, 1100] {
            let found = survey(&bytes, &by_key, wall_ms);
            assert_eq!(found.entries[0].expires_ms, 1100);
            assert_ne!(found.entries[0].digest, 0, "at {wall_ms}");
        }
    }
}
