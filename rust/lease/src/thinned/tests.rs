//! Bytes of responses compared with the acquired records.

use proptest::collection::vec;
use proptest::prelude::*;
use sharecore_records::{
    Compression, Header, LocalRecord, Producer, compress,
    layout::{HEADER, LOG_APPEND_TIME, seal},
    local_batch,
};

use super::*;
use crate::ExpandedCache;

/// Like `thinned`, with a cache of its own.
fn thinned_of(
    bytes: &[u8],
    batches: &[OffsetRange],
    acquired: &[Acquired],
    room: &mut usize,
) -> Option<Vec<u8>> {
    let cache = ExpandedCache::new(1 << 20);
    let log_cache = LogCache {
        cache: &cache,
        log: ([7; 16], 0),
        is_read: true,
    };
    let (has_room, before) = (*room > 0, *room);
    let first = thinned(
        bytes,
        batches,
        acquired,
        log_cache,
        &mut room.clone(),
        Rest::all_in_order,
    );
    let again = thinned(
        bytes,
        batches,
        acquired,
        log_cache,
        room,
        Rest::all_in_order,
    );
    assert!(first == again, "what was kept is as it was");
    let cache = ExpandedCache::new(1 << 20);
    let unkept = LogCache {
        cache: &cache,
        ..log_cache
    };
    let nothing_ready = |_| Rest {
        unfinished: 1,
        in_order: false,
        has_ready: false,
    };
    let once = thinned(
        bytes,
        batches,
        acquired,
        unkept,
        &mut before.clone(),
        nothing_ready,
    );
    assert!(first == once, "what is not kept is as it was");
    if has_room {
        assert_cached_is_alike(bytes, batches, acquired, again.as_ref());
    }
    again
}

/// Cached batches give the same bytes.
fn assert_cached_is_alike(
    bytes: &[u8],
    batches: &[OffsetRange],
    acquired: &[Acquired],
    anew: Option<&Vec<u8>>,
) {
    let cache = ExpandedCache::new(0);
    let log_cache = LogCache {
        cache: &cache,
        log: ([7; 16], 0),
        is_read: true,
    };
    let all = places(bytes).zip(batches);
    let all = all.map(|(place, offsets)| {
        let batch = Batches::new(&bytes[place]).next()?;
        IndexedBatch::new(&batch, *offsets).map(Arc::new)
    });
    let Some(cached) = all.collect::<Option<Vec<_>>>() else {
        return;
    };
    let held = crate::holding::holding(bytes, batches, acquired);
    let whole: Vec<u8> = held
        .into_iter()
        .flat_map(|range| bytes[range].to_vec())
        .collect();
    let (found, size) = thinned_from((&cached, batches), acquired, log_cache);
    assert_eq!(size, whole.len());
    assert!(
        &found == anew.unwrap_or(&whole),
        "other bytes from the cache"
    );
}

/// The value of each offset; None where compaction has left a gap.
type Made = Vec<Option<Vec<u8>>>;

/// A batch that begins at an offset.
fn batch(base_offset: i64, records: &Made, compression: i16, append_time: bool) -> Vec<u8> {
    let keys: Vec<_> = (0..records.len()).map(|at| format!("key {at}")).collect();
    let all: Vec<LocalRecord<'_>> = records
        .iter()
        .zip(&keys)
        .map(|(value, key)| (Some(key.as_bytes()), value.as_deref()))
        .collect();
    let producer = Producer::in_transaction((7, 3));
    let (whole, _) = local_batch(&all, producer, 5000);
    let read = Batches::new(&whole).next().unwrap();
    let header = Header {
        base_offset,
        base_sequence: 40,
        leader_epoch: 2,
        ..read.header
    };
    let mut left = Rewrite::new(&header, None);
    let mut moved = read;
    moved.header = header;
    for record in moved.records(read.payload()).map(Result::unwrap) {
        if record.value.is_some() {
            left.push(record.outline());
        }
    }
    let plain = left.finish().unwrap();
    let read = Batches::new(&plain).next().unwrap();
    let kind = Compression::from_id(compression).unwrap();
    let payload = compress(kind, read.payload()).unwrap();
    let mut header = read.header;
    header.size = HEADER + payload.len();
    header.attributes |= compression | if append_time { LOG_APPEND_TIME } else { 0 };
    let mut bytes = vec![0; header.size];
    header.write(&mut bytes);
    bytes[HEADER..].copy_from_slice(&payload);
    seal(&mut bytes);
    bytes
}

/// Merges acquired neighbors into ranges.
fn acquired(offsets: impl IntoIterator<Item = i64>) -> Vec<Acquired> {
    let mut ranges: Vec<Acquired> = Vec::new();
    for offset in offsets {
        match ranges.last_mut() {
            Some(last) if last.last + 1 == offset => last.last = offset,
            _ => ranges.push(Acquired {
                first: offset,
                last: offset,
                delivery_count: 1,
            }),
        }
    }
    ranges
}

/// Offset, timestamp, bytes.
type Row = (i64, i64, Vec<u8>);

/// Header and records of each batch; panics if one is unreadable.
fn read(bytes: &[u8]) -> Vec<(Header, Vec<Row>)> {
    let mut batches = Batches::new(bytes);
    let read = batches.by_ref().map(|batch| {
        let expanded = batch.expand(EXPANDED_BYTES_MAX).expect("a right checksum");
        let mut records = batch.records(&expanded);
        let all = records.by_ref().map(|record| {
            let record = record.expect("a record");
            (record.offset, record.timestamp, record.bytes.to_vec())
        });
        let all: Vec<_> = all.collect();
        assert!(records.is_at_end());
        assert_eq!(all.len(), batch.header.count as usize);
        (batch.header, all)
    });
    let read = read.collect();
    assert_eq!(batches.rest(), b"");
    read
}

/// The header fields that hold for the whole batch, whichever records are left.
fn lasting(header: &Header) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        (header.base_offset, header.last_offset_delta),
        (header.producer_id, header.producer_epoch),
        (header.base_sequence, header.leader_epoch),
        (header.timestamp_type(), header.base_timestamp),
        (header.is_transactional(), header.is_control()),
    )
}

fn record() -> impl Strategy<Value = Option<Vec<u8>>> {
    let sizes = prop_oneof![6 => 0_usize..40, 1 => 200_usize..3000];
    prop_oneof![
        8 => (sizes, any::<u8>()).prop_map(|(size, byte)| Some(vec![byte; size])),
        1 => Just(None),
    ]
}

proptest! {
    #[test]
    fn an_answer_has_every_acquired_record_once_and_less_than_twice_what_is_wanted(
        made in vec((vec(record(), 1..40), 0_i16..5, any::<bool>(), 0_i64..3), 1..6),
        taken in vec(prop_oneof![3 => Just(false), 1 => Just(true)], 240),
    ) {
        let (mut bytes, mut batches, mut next) = (Vec::new(), Vec::new(), 70);
        for (records, compression, append_time, gap) in &made {
            let first = next + gap;
            next = first + records.len() as i64;
            batches.push(OffsetRange::new(first, next - 1));
            bytes.extend(batch(first, records, *compression, *append_time));
        }
        let in_batch = |offset: &i64| batches.iter().any(|each| each.first <= *offset && *offset <= each.last);
        let offsets = (70..next).zip(&taken).filter(|(_, taken)| **taken).map(|(offset, _)| offset);
        let wanted: Vec<_> = offsets.filter(in_batch).collect();
        let before = read(&bytes);
        let mut room = usize::MAX;
        let anew = thinned_of(&bytes, &batches, &acquired(wanted.iter().copied()), &mut room);
        let held = crate::holding::holding(&bytes, &batches, &acquired(wanted.iter().copied()));
        let whole: Vec<u8> = held.into_iter().flat_map(|range| bytes[range].to_vec()).collect();
        let answer = anew.as_ref().unwrap_or(&whole);
        prop_assert!(anew.is_none() || answer.len() < whole.len());

        let found = read(answer);
        let mut left = found.iter();
        for (header, records) in &before {
            let all: Vec<_> = records.iter().filter(|(offset, ..)| wanted.contains(offset)).cloned().collect();
            let is_held = wanted.iter().any(|at| (header.base_offset..=header.last_offset()).contains(at));
            if !is_held {
                continue;
            }
            let (kept, brought) = left.next().expect("a batch for each that holds something acquired");
            prop_assert_eq!(lasting(kept), lasting(header));
            if brought == records {
                prop_assert_eq!(kept.attributes, header.attributes);
                continue;
            }
            prop_assert_eq!(brought, &all);
            let size = |records: &[Row]| records.iter().map(|each| each.2.len()).sum::<usize>();
            let is_plain = matches!(header.compression(), Ok(Compression::None));
            prop_assert!(
                is_plain || 2 * all.len() < records.len() || 2 * size(&all) < size(records)
            );
        }
        prop_assert!(left.next().is_none());
    }
}

/// The share of a batch above which it is sent unchanged.
fn most(compression: i16) -> (usize, usize) {
    if compression == 0 { (5, 6) } else { (1, 2) }
}

#[test]
fn of_a_batch_of_which_little_is_acquired_the_rest_is_left_out() {
    for compression in 0..5 {
        let records: Made = (0..1000_u64)
            .map(|at| {
                Some(
                    at.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        .to_le_bytes()
                        .repeat(4),
                )
            })
            .collect();
        let bytes = batch(70, &records, compression, false);
        let batches = [OffsetRange::new(70, 1069)];
        let few = acquired((0..10).map(|at| 70 + 100 * at));
        let anew = thinned_of(&bytes, &batches, &few, &mut { usize::MAX }).expect("less");
        let found = read(&anew);
        let offsets: Vec<_> = found[0].1.iter().map(|record| record.0).collect();
        assert_eq!(offsets, (0..10).map(|at| 70 + 100 * at).collect::<Vec<_>>());
        assert!(anew.len() < 1000, "{} bytes", anew.len());
        assert_eq!(found[0].0.compression().unwrap(), Compression::None);
        let more = acquired((0..400).map(|at| 70 + 2 * at));
        let anew = thinned_of(&bytes, &batches, &more, &mut { usize::MAX }).expect("less");
        assert_eq!(read(&anew)[0].0.compression().unwrap() as i16, compression);
        let (part, of) = most(compression);
        let least = (1000 * part).div_ceil(of) as i64;
        // The first records are a little shorter
        let (less, enough) = (acquired(70..50 + least), acquired(70..90 + least));
        let thins = |wanted, mut room| thinned_of(&bytes, &batches, wanted, &mut room).is_some();
        assert!(thins(&less, usize::MAX), "it is no copy of most");
        assert!(!thins(&enough, usize::MAX), "it is most");
        assert!(!thins(&few, 0), "there is no room");
    }
}

#[test]
fn one_small_record_comes_without_a_large_one() {
    let records: Made = vec![Some(vec![1; 10]), Some(vec![2; 5000])];
    let bytes = batch(0, &records, 0, false);
    let batches = [OffsetRange::new(0, 1)];
    let anew = thinned_of(&bytes, &batches, &acquired([0]), &mut { usize::MAX }).expect("less");
    assert_eq!(read(&anew)[0].1.len(), 1);
    let whole = thinned_of(&bytes, &batches, &acquired([1]), &mut { usize::MAX });
    assert!(whole.is_none(), "it is most of the batch");
}

#[test]
fn a_batch_that_cannot_be_read_or_lies_is_sent_as_it_is() {
    let records: Made = (0..10).map(|at| Some(vec![at; 50])).collect();
    let right = batch(0, &records, 0, false);
    let batches = [OffsetRange::new(0, 9)];
    let thin = |bytes: &[u8]| thinned_of(bytes, &batches, &acquired([3]), &mut { usize::MAX });
    assert!(thin(&right).is_some());
    let mut damaged = right.clone();
    damaged[HEADER + 7] ^= 1;
    assert_eq!(thin(&damaged), None, "a wrong checksum");
    for (count, last) in [(9, 9), (11, 9), (10, 7)] {
        let mut header = Header::read(&right).unwrap();
        (header.count, header.last_offset_delta) = (count, last);
        let mut lying = right.clone();
        header.write(&mut lying);
        seal(&mut lying);
        let batches = [OffsetRange::new(0, last.into())];
        let found = thinned_of(&lying, &batches, &acquired([3]), &mut { usize::MAX });
        assert_eq!(found, None, "{count} records up to {last}");
    }
    let mut control = right;
    let attributes = sharecore_records::layout::attributes(&control).unwrap();
    let control_bit = sharecore_records::layout::CONTROL;
    sharecore_records::layout::put_attributes(&mut control, attributes | control_bit);
    seal(&mut control);
    assert_eq!(thin(&control), None, "a marker");
}
