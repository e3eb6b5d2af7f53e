//! Tests of the cache.

use sharecore_records::{
    Compression, Header, LocalRecord, Producer, compress,
    layout::{HEADER, seal},
    local_batch,
};

use super::*;

const LOG: LogId = ([1; 16], 0);

/// A compressed batch of one record at an offset.
fn batch(offset: i64, value: &[u8]) -> Vec<u8> {
    let record: LocalRecord<'_> = (None, Some(value));
    let (whole, header) = local_batch(&[record], Producer::NONE, 0);
    let payload = compress(Compression::Lz4, &whole[HEADER..]).unwrap();
    let header = Header {
        base_offset: offset,
        size: HEADER + payload.len(),
        attributes: Compression::Lz4.id(),
        ..header
    };
    let mut bytes = vec![0; HEADER];
    header.write(&mut bytes);
    bytes.extend_from_slice(&payload);
    seal(&mut bytes);
    bytes
}

fn indexed(cache: &ExpandedCache, log: LogId, bytes: &[u8]) -> Arc<IndexedBatch> {
    let header = Header::read(bytes).unwrap();
    let offsets = OffsetRange::new(header.base_offset, header.last_offset());
    kept(of(cache, log), bytes, offsets, Rest::all_in_order)
}

fn kept(
    log_cache: LogCache<'_>,
    bytes: &[u8],
    offsets: OffsetRange,
    rest: impl FnOnce(OffsetRange) -> Rest,
) -> Arc<IndexedBatch> {
    match log_cache.indexed(bytes, offsets, &mut { 1 << 20 }, rest) {
        Some(Found::Kept(batch)) => batch,
        _ => panic!("it is not kept"),
    }
}

fn of(cache: &ExpandedCache, log: LogId) -> LogCache<'_> {
    LogCache {
        cache,
        log,
        is_read: true,
    }
}

fn offsets(cache: &ExpandedCache) -> Vec<i64> {
    cache.with(|entries| entries.by_place.keys().map(|place| place.1).collect())
}

#[test]
fn batches_of_each_log_and_offset_are_kept_apart_and_those_written_anew_are_expanded_anew() {
    let cache = ExpandedCache::new(1 << 20);
    for log in [([1; 16], 0), ([1; 16], 1), ([2; 16], 0)] {
        for offset in [0, 5] {
            let text = format!("{log:?} {offset}");
            let bytes = batch(offset, text.as_bytes());
            let first = indexed(&cache, log, &bytes);
            assert_eq!(first.bytes(), bytes);
            assert!(
                Arc::ptr_eq(&first, &indexed(&cache, log, &bytes)),
                "it is kept"
            );
        }
    }
    assert_eq!(offsets(&cache).len(), 6);
    let anew = batch(0, b"anew");
    assert_eq!(indexed(&cache, LOG, &anew).bytes(), anew);
    assert_eq!(indexed(&cache, LOG, &anew).bytes(), anew);
    assert_eq!(offsets(&cache).len(), 6);
}

#[test]
fn it_takes_no_more_bytes_than_it_may_and_forgets_what_was_not_wanted_for_longest() {
    let first = batch(0, &[7; 1000]);
    let one = ExpandedCache::new(1 << 20);
    indexed(&one, LOG, &first);
    let most = 3 * one.bytes() + 100;
    let cache = ExpandedCache::new(most);
    for offset in 0..20 {
        indexed(&cache, LOG, &batch(offset, &[7; 1000]));
        indexed(&cache, LOG, &first);
        assert!(cache.bytes() <= most, "{}", cache.bytes());
    }
    assert_eq!(
        offsets(&cache),
        [0, 18, 19],
        "the first was wanted all along"
    );
    indexed(&cache, LOG, &batch(30, &[7; 8000]));
    let message = "one that is larger than the cache is not kept";
    assert_eq!(offsets(&cache), [0, 18, 19], "{message}");
    let none = ExpandedCache::new(0);
    assert_eq!(indexed(&none, LOG, &first).bytes(), first);
    assert_eq!(none.bytes(), 0);
}

#[test]
fn batches_are_found_by_any_of_their_offsets_as_far_as_they_are_kept() {
    let cache = ExpandedCache::new(1 << 20);
    let many: Vec<LocalRecord<'_>> = vec![(None, Some(b"v")); 10];
    for first in [0, 10, 30] {
        let (whole, header) = local_batch(&many, Producer::NONE, 0);
        let header = Header {
            base_offset: first,
            ..header
        };
        let mut bytes = whole;
        header.write(&mut bytes);
        seal(&mut bytes);
        indexed(&cache, LOG, &bytes);
    }
    let from = |offset: i64, log: LogId| {
        let (all, _) = of(&cache, log).batches((0, offset), |_, batch| {
            (true, Some(batch.offsets().last + 1))
        });
        all.iter()
            .map(|batch| batch.offsets().first)
            .collect::<Vec<_>>()
    };
    assert_eq!(from(0, LOG), [0, 10]);
    assert_eq!(from(15, LOG), [10]);
    assert_eq!(from(39, LOG), [30]);
    for missing in [-1, 20, 29, 40] {
        assert_eq!(from(missing, LOG), [], "{missing}");
    }
    assert_eq!(from(0, ([1; 16], 1)), [], "another log");
    let (passing, misses) = of(&cache, LOG).batches((0, 3), |bytes, batch| {
        (bytes == 0, (batch.offsets().first == 0).then_some(35))
    });
    assert_eq!(
        (passing.len(), misses),
        (1, false),
        "no more than is wanted"
    );
    let (passing, misses) = of(&cache, LOG).batches((0, 3), |_, batch| {
        (true, (batch.offsets().first == 0).then_some(35))
    });
    assert_eq!(
        (passing.len(), misses),
        (2, false),
        "what is not wanted need not be there"
    );
    let others = ([1; 16], 1);
    indexed(&cache, others, &batch(0, b"v"));
    of(&cache, LOG).batches((10, 0), |_, _| (false, None));
    assert_eq!(offsets(&cache), [19, 39, 0], "the log starts at 10");
}

#[test]
fn batches_that_are_cheap_to_read_again_take_an_eighth() {
    let many = |offset: i64, compression: Compression| {
        let value = [7; 1000];
        let record: LocalRecord<'_> = (None, Some(&value));
        let (whole, header) = local_batch(&[record; 10], Producer::NONE, 0);
        if compression == Compression::None {
            let header = Header {
                base_offset: offset,
                ..header
            };
            let mut bytes = whole;
            header.write(&mut bytes);
            seal(&mut bytes);
            bytes
        } else {
            batch(offset, &value.repeat(10))
        }
    };
    let filled = |compression: Compression, in_order: bool, most: usize| {
        let cache = ExpandedCache::new(most);
        for number in 0..100 {
            let bytes = many(10 * number, compression);
            let header = Header::read(&bytes).unwrap();
            let range = OffsetRange::new(header.base_offset, header.last_offset());
            let rest = |_| Rest {
                unfinished: 10,
                in_order,
                has_ready: true,
            };
            of(&cache, LOG).indexed(&bytes, range, &mut { 1 << 20 }, rest);
        }
        cache
    };
    let most = 160_000;
    for (compression, in_order) in [
        (Compression::None, true),
        (Compression::Lz4, true),
        (Compression::Lz4, false),
    ] {
        let bytes = filled(compression, in_order, most).bytes();
        assert!((most * 9 / 10..=most).contains(&bytes), "{bytes}");
    }
    let cheap = filled(Compression::None, false, most);
    assert!((10_000..=most / 8).contains(&cheap.bytes()));
    assert_eq!(offsets(&cheap), [999]);
    let one = filled(Compression::None, false, 2 * cheap.bytes());
    assert_eq!(offsets(&one), [999], "the last one stays");
    indexed(&cheap, LOG, &many(2000, Compression::None));
    assert_eq!(offsets(&cheap), [999, 2009], "one of a group with an order");
}

#[test]
fn a_batch_that_is_cheap_to_read_again_is_kept_only_while_more_of_it_is_ready() {
    let cache = ExpandedCache::new(1 << 20);
    let record: LocalRecord<'_> = (None, Some(b"v"));
    let (plain, _) = local_batch(&[record; 10], Producer::NONE, 0);
    let lz4 = batch(0, b"value");
    for (bytes, in_order, has_ready, is_kept) in [
        (&plain, false, false, false),
        (&lz4, false, false, true),
        (&plain, true, false, true),
        (&plain, false, true, true),
        (&plain, false, false, true),
    ] {
        let header = Header::read(bytes).unwrap();
        let offsets = OffsetRange::new(header.base_offset, header.last_offset());
        let rest = |_| Rest {
            unfinished: 10,
            in_order,
            has_ready,
        };
        let found = of(&cache, LOG).indexed(bytes, offsets, &mut { 1 << 20 }, rest);
        let found = matches!(found, Some(Found::Kept(_)));
        assert_eq!(found, is_kept, "{in_order} {has_ready}");
        if has_ready {
            continue; // the next one finds it
        }
        cache.with(|entries| entries.forget((LOG, offsets.last)));
        assert_eq!(cache.bytes(), 0);
    }
}

#[test]
fn a_batch_is_dropped_once_all_its_records_are_delivered() {
    let cache = ExpandedCache::new(1 << 20);
    let many: Vec<LocalRecord<'_>> = vec![(None, Some(b"v")); 10];
    let (bytes, _) = local_batch(&many, Producer::NONE, 0);
    let batch = indexed(&cache, LOG, &bytes);
    for (count, is_kept) in [(4, true), (5, true), (1, false), (1, false)] {
        of(&cache, LOG).delivered(&batch, count);
        assert_eq!(offsets(&cache).len(), usize::from(is_kept));
    }
    assert_eq!(cache.bytes(), 0);
}
