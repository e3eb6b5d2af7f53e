//! When records may be delivered, as their headers and their ages say.

use sharecore_engine::{Entry, Spec};
use sharecore_records::{Batch, Batches, Fault, Record, TimestampType};

/// A batch that expands further is taken for one whose records say nothing.
const EXPANDED_BYTES_MAX: usize = 16 << 20;
/// So many digits are a number.
const DIGITS_MAX: usize = 19;

/// What record batches say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Ascending; neighbors that are alike share one.
    pub entries: Vec<Entry>,
    /// Headers that are no number and count as none.
    pub unreadable_headers: u64,
    /// Batches that cannot be expanded; their records are delivered as if they said nothing.
    pub unreadable_batches: u64,
    /// Bytes of records that were read, expanded.
    pub expanded_bytes: usize,
}

/// Reads what the records of whole batches say.
pub fn survey(bytes: &[u8], spec: &Spec, wall_ms: i64) -> Survey {
    let mut survey = Survey::default();
    for batch in Batches::new(bytes) {
        let before = survey.entries.len();
        if survey.batch(&batch, spec, wall_ms).is_err() {
            survey.entries.truncate(before);
            survey.push(batch.header.base_offset, Entry::AT_ONCE, Entry::NEVER);
            survey.unreadable_batches += 1;
        }
    }
    survey
}

impl Survey {
    fn push(&mut self, offset: i64, not_before_ms: i64, expires_ms: i64) {
        let entry = Entry {
            offset,
            not_before_ms,
            expires_ms,
        };
        match self.entries.last() {
            Some(last) if (last.not_before_ms, last.expires_ms) == (not_before_ms, expires_ms) => {}
            _ => self.entries.push(entry),
        }
    }

    fn batch(&mut self, batch: &Batch<'_>, spec: &Spec, wall_ms: i64) -> Result<(), Fault> {
        let header = &batch.header;
        let first = header.base_offset;
        if header.is_control() {
            self.push(first, Entry::AT_ONCE, Entry::NEVER);
            return Ok(());
        }
        if spec.deliver_at_header.is_empty() {
            // a record's own time to live makes it shorter, never longer
            let expires_ms = expiry(spec.ttl_ms, header.max_timestamp, Entry::AT_ONCE);
            let is_alike = header.timestamp_type() == TimestampType::LogAppendTime
                && spec.ttl_header.is_empty();
            if is_alike || expires_ms <= wall_ms {
                self.push(first, Entry::AT_ONCE, expires_ms);
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
            // what precedes the first record goes with it; offsets that go back are in order here
            let offset = if next == first {
                first
            } else {
                record.offset.max(next)
            };
            self.push(offset, not_before_ms, expires_ms);
            next = offset.max(record.offset).saturating_add(1);
        }
        if next == first {
            self.push(first, Entry::AT_ONCE, Entry::NEVER);
        }
        Ok(())
    }

    /// The number in the last header of a name; one that is none counts as no header.
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

/// A number in ASCII digits; what is larger than a time can be is the latest time.
fn number(value: &[u8]) -> Option<i64> {
    let is_number = (1..=DIGITS_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(value).ok().filter(|_| is_number)?;
    let number: u64 = digits.parse().ok()?;
    Some(i64::try_from(number).unwrap_or(i64::MAX))
}

/// When a record is given up; without a timestamp its age is known from its delivery time on alone.
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

    /// A batch with a record for each list of headers, of the time 1000.
    fn batch(records: &[&[Header]]) -> Vec<u8> {
        let value: LocalRecord<'_> = (None, Some(b"v"));
        let records: Vec<_> = records.iter().map(|headers| (value, *headers)).collect();
        headed_batch(&records, 1000)
    }

    fn spec(deliver_at: &str, ttl_ms: Option<i64>, ttl: &str) -> Spec {
        Spec {
            deliver_at_header: deliver_at.into(),
            ttl_ms,
            ttl_header: ttl.into(),
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
}
