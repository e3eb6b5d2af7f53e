use super::*;
use crate::compression::compress;
use crate::layout::CONTROL;

const RANGE: Range = Range {
    first: 10,
    last: 12,
    delivery_count: 2,
    cause: Cause::Rejected,
};

fn letters(copy: bool, limit: usize) -> DeadLetters {
    let origin = Origin {
        group: "g".into(),
        topic: "orders".into(),
        partition: 3,
    };
    DeadLetters::new(origin, copy, 77, limit)
}

type Read = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<String>);

/// A batch at `base` of values, each with the key `k` and the given headers.
fn source(base: i64, attributes: i16, values: &[&[u8]], own: &[&str]) -> Vec<u8> {
    let mut records = Vec::new();
    for (delta, value) in values.iter().enumerate() {
        let mut body = vec![0, 0];
        put_varint(&mut body, delta as i64);
        put_field(&mut body, Some(b"k"));
        put_field(&mut body, Some(value));
        put_varint(&mut body, own.len() as i64);
        for name in own {
            put_field(&mut body, Some(name.as_bytes()));
            put_field(&mut body, Some(b"x"));
        }
        put_varint(&mut records, body.len() as i64);
        records.extend_from_slice(&body);
    }
    let header = Header {
        base_offset: base,
        size: 0,
        leader_epoch: 0,
        attributes,
        last_offset_delta: values.len() as i32 - 1,
        base_timestamp: 5,
        max_timestamp: 5,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count: values.len() as i32,
    };
    let compression = header.compression().unwrap();
    assembled(header, &compress(compression, &records).unwrap())
}

/// For each dead-letter record: the origin's offset, key, value and the names of the headers after the first six.
fn read(batch: &[u8]) -> Vec<Read> {
    let batch = Batches::new(batch).next().unwrap();
    assert_eq!(
        (batch.header.base_timestamp, batch.header.max_timestamp),
        (77, 77)
    );
    let expanded = batch.expand(1 << 20).unwrap();
    let records = batch.records(&expanded).map(Result::unwrap);
    records
        .enumerate()
        .map(|(index, record)| {
            assert_eq!(record.offset, index as i64);
            let headers: Vec<_> = record.headers.clone().map(Result::unwrap).collect();
            let text = |at: usize| String::from_utf8(headers[at].1.unwrap().to_vec()).unwrap();
            let names: Vec<_> = headers[..6].iter().map(|(name, _)| name.as_str()).collect();
            let expected = [
                "topic",
                "partition",
                "offset",
                "group",
                "delivery.count",
                "message",
            ];
            assert_eq!(names, expected.map(|name| format!("{PREFIX}{name}")));
            assert_eq!([text(0), text(1), text(3)], ["orders", "3", "g"]);
            assert_eq!([text(4), text(5)], ["2", REJECTED]);
            (
                text(2).parse().unwrap(),
                record.key.map(<[u8]>::to_vec),
                record.value.map(<[u8]>::to_vec),
                headers[6..].iter().map(|(name, _)| name.clone()).collect(),
            )
        })
        .collect()
}

fn copied(offset: i64, value: &[u8], own: &[&str]) -> Read {
    let own = own.iter().map(|name| (*name).to_owned()).collect();
    (offset, Some(b"k".to_vec()), Some(value.to_vec()), own)
}

fn bare(offset: i64) -> Read {
    (offset, None, None, Vec::new())
}

#[test]
fn a_copy_carries_content_and_own_headers() {
    for attributes in 0..5 {
        let records = source(
            9,
            attributes,
            &[b"a", b"b", b"c", b"d", b"e"],
            &["mine", "__dlq.errors.topic"],
        );
        let mut letters = letters(true, 1 << 20);
        assert_eq!(letters.add(&[RANGE], &records, 14), (1, 0));
        assert_eq!(
            read(&letters.finish()),
            [
                copied(10, b"b", &["mine"]),
                copied(11, b"c", &["mine"]),
                copied(12, b"d", &["mine"])
            ]
        );
    }
}

#[test]
fn without_a_copy_or_a_record_a_letter_is_bare() {
    let records = source(11, 0, &[b"a"], &[]);
    for (copy, second) in [(false, bare(11)), (true, copied(11, b"a", &[]))] {
        let mut letters = letters(copy, 1 << 20);
        assert_eq!(letters.add(&[RANGE], &records, 13), (1, 0));
        assert_eq!(read(&letters.finish()), [bare(10), second, bare(12)]);
    }
}

#[test]
fn control_records_get_no_letter() {
    let mut records = source(10, 0, &[b"a"], &[]);
    records.extend(source(11, CONTROL, &[b"marker"], &[]));
    records.extend(source(12, 0, &[b"b"], &[]));
    for copy in [false, true] {
        let mut letters = letters(copy, 1 << 20);
        letters.add(&[RANGE], &records, 13);
        let offsets: Vec<_> = read(&letters.finish()).iter().map(|read| read.0).collect();
        assert_eq!(offsets, [10, 12]);
    }
}

#[test]
fn a_batch_is_full_at_its_limit_and_the_rest_follows() {
    let records = source(10, 0, &[&[7; 100], &[8; 100], &[9; 100]], &[]);
    let mut letters = letters(true, 700);
    assert_eq!(letters.add(&[RANGE], &records, 13), (0, 12));
    assert_eq!(letters.count(), 2);
    assert!(letters.finish().len() <= 700);
    let rest = Range { first: 12, ..RANGE };
    assert_eq!(letters.add(&[rest], &records, 13), (1, 0));
    assert_eq!(read(&letters.finish()), [copied(12, &[9; 100], &[])]);
}

#[test]
fn what_finds_no_room_comes_whole_in_the_next_batch() {
    let values: [&[u8]; 3] = [&[7; 100], &[8; 100], &[9; 100]];
    let records = source(10, 0, &values, &[]);
    let whole = |range: Range| {
        let mut letters = letters(true, 1 << 20);
        letters.add(&[range], &records, 13);
        letters.finish().len()
    };
    // Room for two, and for a third without its content
    let limit = whole(Range { last: 11, ..RANGE }) + 240;
    assert!(limit < whole(RANGE));
    let mut letters = letters(true, limit);
    assert_eq!(letters.add(&[RANGE], &records, 13), (0, 12));
    assert_eq!(
        read(&letters.finish()),
        [copied(10, values[0], &[]), copied(11, values[1], &[])]
    );
    let rest = Range { first: 12, ..RANGE };
    assert_eq!(letters.add(&[rest], &records, 13), (1, 0));
    assert_eq!(read(&letters.finish()), [copied(12, values[2], &[])]);
}

#[test]
fn what_is_too_large_loses_its_headers_and_then_its_content() {
    let name = "n".repeat(200);
    let one = Range { last: 10, ..RANGE };
    let letter = |value: &[u8], own: &[&str], limit| {
        let mut letters = letters(true, limit);
        assert_eq!(
            letters.add(&[one], &source(10, 0, &[value], own), 11),
            (1, 0)
        );
        read(&letters.finish()).remove(0)
    };
    assert_eq!(letter(&[1; 50], &[&name], 400), copied(10, &[1; 50], &[]));
    assert_eq!(letter(&[1; 250], &[], 400), bare(10));
    assert_eq!(letter(&[1; 500], &[], 400), bare(10));
    // Not even a record without content fits; appending the batch reports that
    assert_eq!(letter(&[1; 500], &[], 100), bare(10));
}

#[test]
fn a_compressed_batch_that_expands_past_the_limit_is_not_copied() {
    let records = source(10, 1, &[&[1; 10], &[1; 5000]], &[]);
    let mut letters = letters(true, 4000);
    letters.add(&[RANGE], &records, 13);
    assert_eq!(read(&letters.finish()), [bare(10), bare(11), bare(12)]);
}

#[test]
fn letters_end_where_the_source_was_read_to() {
    let records = source(10, 0, &[b"a"], &[]);
    let mut letters = letters(true, 1 << 20);
    assert_eq!(letters.add(&[RANGE], &records, 11), (0, 11));
    assert_eq!(letters.count(), 1);
}

#[test]
fn bytes_that_are_no_batch_give_bare_letters() {
    let mut records = source(10, 0, &[b"a", b"b", b"c"], &[]);
    let at = records.len() - 3;
    records[at] ^= 0xff;
    let mut letters = letters(true, 1 << 20);
    assert_eq!(letters.add(&[RANGE], &records, 13), (1, 0));
    assert_eq!(read(&letters.finish()), [bare(10), bare(11), bare(12)]);
}

#[test]
fn many_ranges_take_one_walk_and_one_that_goes_back_ends_it() {
    let records = source(10, 1, &[b"a", b"b", b"c", b"d"], &[]);
    let range = |first, last| Range {
        first,
        last,
        ..RANGE
    };
    let mut letters = letters(true, 1 << 20);
    let ranges = [range(10, 10), range(12, 12), range(13, 15), range(11, 11)];
    assert_eq!(letters.add(&ranges, &records, 20), (3, 11));
    assert_eq!(letters.add(&ranges[3..], &records, 20), (1, 0));
    assert_eq!(
        read(&letters.finish()),
        [
            copied(10, b"a", &[]),
            copied(12, b"c", &[]),
            copied(13, b"d", &[]),
            bare(14),
            bare(15),
            copied(11, b"b", &[])
        ]
    );
}
