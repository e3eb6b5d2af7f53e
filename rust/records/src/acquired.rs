//! The acquired records among the batches of a `ShareFetch` response.

use std::borrow::Cow;
use std::fmt;

use crate::batch::{Batch, Batches, Header};
use crate::fault::Fault;
use crate::record::{Record, Records};

/// A range of acquired offsets: first, last, delivery count.
pub type Span = (i64, i64, i16);
/// A range of offsets: first, last.
pub type Offsets = (i64, i64);
/// A record's headers: names and values.
pub type OwnedHeaders = Box<[(String, Option<Box<[u8]>>)]>;

/// Far more offsets than a broker lets one member hold in a range.
const OFFSETS_MAX: i64 = 1 << 31;

/// Acquired ranges that a broker does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unordered;

impl fmt::Display for Unordered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("acquired ranges must be bounded, ascend and not overlap")
    }
}

impl std::error::Error for Unordered {}

/// An acquired record.
#[derive(Debug)]
pub struct Found<'r, 'h> {
    /// The header of its batch.
    pub batch: &'h Header,
    /// Key, value, offset and time.
    pub record: Record<'r>,
    /// Its headers; `None` without any.
    pub headers: Option<OwnedHeaders>,
    /// Its position among all acquired offsets.
    pub position: usize,
    /// How often it was delivered, this time included.
    pub delivery_count: i16,
}

/// Acquired offsets without a record, by the reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The log does not have them.
    pub gaps: Vec<Offsets>,
    /// The response ends before them.
    pub cut_off: Vec<Offsets>,
    /// Their batch cannot be read.
    pub faults: Vec<(i64, i64, Fault)>,
}

/// Batches with acquired offsets, expanded, and those that cannot be.
#[derive(Debug)]
pub struct AcquiredRecords<'a> {
    acquired: &'a [Span],
    batches: Vec<(Batch<'a>, Cow<'a, [u8]>)>,
    faults: Vec<(i64, i64, Fault)>,
    /// The first offset that a batch cut off at the end may hold.
    cut_off_from: Option<i64>,
}

impl<'a> AcquiredRecords<'a> {
    /// Expand the batches with acquired offsets, up to so many bytes in all.
    pub fn expand(data: &'a [u8], acquired: &'a [Span], limit: usize) -> Result<Self, Unordered> {
        let inside = acquired
            .iter()
            .all(|(first, last, _)| 0 <= *first && first <= last && last - first < OFFSETS_MAX);
        if !inside || acquired.windows(2).any(|pair| pair[0].1 >= pair[1].0) {
            return Err(Unordered);
        }
        let mut expanded = Self {
            acquired,
            batches: Vec::new(),
            faults: Vec::new(),
            cut_off_from: None,
        };
        let (mut rest, mut end) = (limit, i64::MIN);
        let mut batches = Batches::new(data);
        for batch in &mut batches {
            let (first, last) = (batch.header.base_offset, batch.header.last_offset());
            end = end.max(last.saturating_add(1));
            let next = acquired.partition_point(|(_, to, _)| *to < first);
            if acquired.get(next).is_none_or(|(from, _, _)| *from > last) {
                continue;
            }
            match batch.expand(rest) {
                Ok(records) => {
                    rest -= records.len().min(rest);
                    expanded.batches.push((batch, records));
                }
                Err(fault) => expanded.faults.push((first, last, fault)),
            }
        }
        expanded.cut_off_from = (!batches.rest().is_empty()).then_some(end);
        Ok(expanded)
    }

    /// Pass each acquired record on, in order; return the offsets without one.
    pub fn for_each<E>(
        self,
        mut found: impl FnMut(Found<'_, '_>) -> Result<(), E>,
    ) -> Result<Missing, E> {
        let mut faults = self.faults;
        let mut walk = Walk {
            acquired: self.acquired,
            index: 0,
            before: 0,
            next: i64::MIN,
            missing: Vec::new(),
        };
        for (batch, content) in &self.batches {
            let header = &batch.header;
            if header.is_control() {
                continue;
            }
            let read = walk.read(header, batch.records(content), &mut found)?;
            if let Err(fault) = read {
                let first = walk.next.max(header.base_offset);
                faults.push((first, header.last_offset(), fault));
            }
        }
        walk.pass(i64::MAX);
        Ok(Missing::of(&walk.missing, &faults, self.cut_off_from))
    }
}

/// Walks over the acquired ranges in step with the records; both ascend.
struct Walk<'a> {
    acquired: &'a [Span],
    index: usize,
    /// Offsets in the ranges before `index`.
    before: usize,
    next: i64,
    missing: Vec<Offsets>,
}

impl Walk<'_> {
    fn read<E>(
        &mut self,
        batch: &Header,
        records: Records<'_>,
        found: &mut impl FnMut(Found<'_, '_>) -> Result<(), E>,
    ) -> Result<Result<(), Fault>, E> {
        for record in records {
            let read = record.and_then(|record| owned(&record).map(|headers| (record, headers)));
            let (record, headers) = match read {
                Ok(read) => read,
                Err(fault) => return Ok(Err(fault)),
            };
            let Some((position, delivery_count)) = self.take(record.offset) else {
                continue;
            };
            found(Found {
                batch,
                record,
                headers,
                position,
                delivery_count,
            })?;
        }
        Ok(Ok(()))
    }

    /// Return the position among all acquired offsets and the delivery count, if an offset is acquired.
    fn take(&mut self, offset: i64) -> Option<(usize, i16)> {
        self.pass(offset);
        let (first, last, count) = *self.acquired.get(self.index)?;
        if offset < self.next || offset > last {
            return None;
        }
        self.next = offset + 1;
        Some((self.before + (offset - first) as usize, count))
    }

    /// Note acquired offsets below `offset` without a record.
    fn pass(&mut self, offset: i64) {
        while let Some((first, last, _)) = self.acquired.get(self.index) {
            let from = self.next.max(*first);
            let to = (*last).min(offset - 1);
            if from <= to {
                self.missing.push((from, to));
            }
            self.next = from.max(to + 1);
            if self.next <= *last {
                return;
            }
            self.before += (last - first + 1) as usize;
            self.index += 1;
        }
    }
}

fn owned(record: &Record<'_>) -> Result<Option<OwnedHeaders>, Fault> {
    if record.headers.is_empty() {
        return Ok(None);
    }
    let headers = record.headers.clone();
    let headers = headers.map(|header| header.map(|(name, value)| (name, value.map(Box::from))));
    headers.collect::<Result<OwnedHeaders, Fault>>().map(Some)
}

impl Missing {
    fn of(missing: &[Offsets], faults: &[(i64, i64, Fault)], cut_off_from: Option<i64>) -> Self {
        let known = faults.iter().map(|(first, last, _)| (*first, *last));
        let mut known: Vec<_> = known
            .chain(cut_off_from.map(|from| (from, i64::MAX)))
            .collect();
        known.sort_unstable();
        let cut_off = cut_off_from.map(|from| overlap(missing, from, i64::MAX).collect());
        let faults = faults.iter().flat_map(|(first, last, fault)| {
            let here = overlap(missing, *first, *last);
            here.map(|(from, to)| (from, to, fault.clone()))
        });
        Self {
            gaps: missing
                .iter()
                .flat_map(|each| without(*each, &known))
                .collect(),
            cut_off: cut_off.unwrap_or_default(),
            faults: faults.collect(),
        }
    }
}

fn overlap(ranges: &[Offsets], first: i64, last: i64) -> impl Iterator<Item = Offsets> {
    ranges
        .iter()
        .map(move |(from, to)| ((*from).max(first), (*to).min(last)))
        .filter(|(from, to)| from <= to)
}

/// Return the parts of a range that no known range covers; those ascend by their first offset.
fn without((mut from, last): Offsets, known: &[Offsets]) -> Vec<Offsets> {
    let mut gaps = Vec::new();
    for (known_first, known_last) in known {
        if *known_last < from || *known_first > last {
            continue;
        }
        if from < *known_first {
            gaps.push((from, known_first - 1));
        }
        from = from.max(known_last.saturating_add(1));
    }
    if from <= last {
        gaps.push((from, last));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::layout::{ATTRIBUTES_AT, HEADER, PREFIX, seal};
    use crate::{Compression, LocalHeaders, compress, headed_batch};

    /// A batch of `count` records, each with its offset as its value.
    fn batch(first: i64, count: i64) -> Vec<u8> {
        let values: Vec<_> = (first..first + count).map(i64::to_be_bytes).collect();
        let none: LocalHeaders<'_> = &[];
        let records: Vec<_> = values
            .iter()
            .map(|value| ((None, Some(&value[..])), none))
            .collect();
        let mut bytes = headed_batch(&records, 5);
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes
    }

    fn read(data: &[u8], acquired: &[Span]) -> (Vec<(i64, usize, i16)>, Missing) {
        let mut found = Vec::new();
        let acquired = AcquiredRecords::expand(data, acquired, 1 << 20).expect("they ascend");
        let missing = acquired.for_each(|each| {
            let value = each.record.value.expect("a value");
            assert_eq!(value, each.record.offset.to_be_bytes());
            found.push((each.record.offset, each.position, each.delivery_count));
            Ok::<_, ()>(())
        });
        (found, missing.expect("nothing raises"))
    }

    #[test]
    fn only_acquired_records_are_found() {
        let data = [batch(10, 3), batch(13, 2)].concat();
        let (found, missing) = read(&data, &[(11, 11, 1), (13, 14, 4)]);
        assert_eq!(found, [(11, 0, 1), (13, 1, 4), (14, 2, 4)]);
        assert_eq!(missing, Missing::default());
    }

    #[test]
    fn offsets_without_a_record_have_their_reason() {
        let whole = [batch(10, 2), batch(15, 2)].concat();
        let gaps = |gaps: &[Offsets]| Missing {
            gaps: gaps.to_vec(),
            ..Missing::default()
        };
        assert_eq!(
            read(&whole, &[(11, 15, 1), (18, 19, 1)]).1,
            gaps(&[(12, 14), (18, 19)])
        );
        let mut cut = [&whole[..], &batch(17, 3)[..40]].concat();
        let (found, missing) = read(&cut, &[(16, 18, 1)]);
        assert_eq!((found.len(), missing.cut_off), (1, vec![(17, 18)]));
        assert_eq!(missing.gaps, []);
        // the first batch is damaged: its checksum does not match
        cut.truncate(whole.len());
        cut[70] ^= 1;
        let (found, missing) = read(&cut, &[(10, 16, 1)]);
        assert_eq!(
            found.iter().map(|each| each.0).collect::<Vec<_>>(),
            [15, 16]
        );
        assert_eq!(missing.faults, [(10, 11, Fault::Checksum)]);
        assert_eq!(missing.gaps, [(12, 14)]);
    }

    /// The same batch, compressed.
    fn zipped(first: i64, count: i64) -> Vec<u8> {
        let plain = batch(first, count);
        let records = compress(Compression::Gzip, &plain[HEADER..]).expect("gzip is there");
        let mut bytes = [&plain[..HEADER], &records].concat();
        let size = (bytes.len() - PREFIX) as i32;
        bytes[PREFIX - 4..PREFIX].copy_from_slice(&size.to_be_bytes());
        bytes[ATTRIBUTES_AT + 1] = 1;
        seal(&mut bytes);
        bytes
    }

    #[test]
    fn batches_share_the_limit_of_expanded_bytes() {
        let data = [zipped(0, 4), zipped(4, 4)].concat();
        let all = AcquiredRecords::expand(&data, &[(0, 7, 1)], 1 << 20).expect("ascending");
        let first = all.batches[0].1.len();
        let within = AcquiredRecords::expand(&data, &[(0, 7, 1)], first).expect("ascending");
        let mut found = Vec::new();
        let missing = within.for_each(|each| {
            found.push(each.record.offset);
            Ok::<_, ()>(())
        });
        assert_eq!(found, [0, 1, 2, 3]);
        let faults = missing.expect("nothing raises").faults;
        assert!(
            matches!(faults[..], [(4, 7, Fault::TooLarge { .. })]),
            "{faults:?}"
        );
    }

    #[test]
    fn ranges_that_no_broker_sends_are_refused() {
        for bad in [
            &[(-1, 3, 1)][..],
            &[(3, 2, 1)],
            &[(0, OFFSETS_MAX, 1)],
            &[(0, 3, 1), (3, 4, 1)],
            &[(5, 6, 1), (0, 1, 1)],
        ] {
            assert_eq!(
                AcquiredRecords::expand(&[], bad, 1).err(),
                Some(Unordered),
                "{bad:?}"
            );
        }
        assert!(AcquiredRecords::expand(&[], &[(0, OFFSETS_MAX - 1, 1)], 1).is_ok());
    }

    #[test]
    fn an_error_of_the_receiver_ends_the_walk() {
        let data = batch(0, 3);
        let acquired = AcquiredRecords::expand(&data, &[(0, 2, 1)], 1 << 20).expect("ascending");
        let mut seen = 0;
        let ended = acquired.for_each(|_| {
            seen += 1;
            Err("full")
        });
        assert_eq!((ended, seen), (Err("full"), 1));
    }

    proptest! {
        /// Each acquired offset is either found or missing, once, for any batches and ranges.
        #[test]
        fn every_acquired_offset_is_accounted_for(
            batches in vec((0_i64..4, 1_i64..5), 0..6),
            offsets in btree_set(0_i64..40, 0..30),
            cut in 0_usize..200,
        ) {
            let (mut data, mut at, mut present) = (Vec::new(), 0, Vec::new());
            for (gap, count) in batches {
                let first = at + gap;
                let bytes = batch(first, count);
                present.push((data.len() + bytes.len(), first..first + count));
                data.extend(bytes);
                at = first + count;
            }
            data.truncate(data.len().saturating_sub(cut));
            let spans: Vec<Span> = offsets.iter().map(|offset| (*offset, *offset, 2)).collect();
            let (found, missing) = read(&data, &spans);
            let expected: Vec<i64> = offsets
                .iter()
                .copied()
                .filter(|offset| {
                    let mut whole = present.iter().filter(|(end, _)| *end <= data.len());
                    whole.any(|(_, here)| here.contains(offset))
                })
                .collect();
            prop_assert_eq!(found.iter().map(|each| each.0).collect::<Vec<_>>(), expected);
            let mut all: Vec<i64> = found.iter().map(|each| each.0).collect();
            for (first, last) in missing.gaps.iter().chain(&missing.cut_off) {
                all.extend(*first..=*last);
            }
            all.sort_unstable();
            prop_assert_eq!(all, offsets.into_iter().collect::<Vec<_>>());
            prop_assert!(missing.faults.is_empty());
            for (place, position, _) in found {
                prop_assert_eq!(spans[position].0, place);
            }
        }
    }
}
