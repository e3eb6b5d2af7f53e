//! Encodes values of any content byte by byte and decodes them; decodes any bytes.

use proptest::prelude::*;
use sharecore_state::{Batch, Head, Key, Kind, RecordFault, read_value};

type Tags = Vec<(u8, Vec<u8>)>;

fn tags() -> impl Strategy<Value = Tags> {
    // The count has tag 0; later fields have other tags
    prop::collection::vec(
        (1_u8..200, prop::collection::vec(any::<u8>(), 0..200)),
        0..3,
    )
}

fn batches() -> impl Strategy<Value = Vec<(Batch, Tags)>> {
    let batch = (any::<i64>(), any::<i64>(), any::<i8>(), any::<i16>());
    let batch = batch.prop_map(|(first, last, state, delivery_count)| Batch {
        first,
        last,
        state,
        delivery_count,
    });
    prop::collection::vec((batch, tags()), 0..200)
}

prop_compose! {
    fn head()(
        snapshot_epoch: i32, state_epoch: Option<i32>, leader_epoch: i32, start_offset: i64,
        delivery_complete_count: i32, times: (i64, i64)
    ) -> Head {
        let times = state_epoch.map(|_| times);
        Head { snapshot_epoch, state_epoch, leader_epoch, start_offset, delivery_complete_count, times }
    }
}

fn varint(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_tags(tags: &Tags, out: &mut Vec<u8>) {
    varint(tags.len(), out);
    for (tag, content) in tags {
        varint(usize::from(*tag), out);
        varint(content.len(), out);
        out.extend(content);
    }
}

fn written(head: &Head, batches: &[(Batch, Tags)], tags: &Tags) -> Vec<u8> {
    let mut out = vec![0, 0];
    out.extend(head.snapshot_epoch.to_be_bytes());
    out.extend(head.state_epoch.into_iter().flat_map(i32::to_be_bytes));
    out.extend(head.leader_epoch.to_be_bytes());
    out.extend(head.start_offset.to_be_bytes());
    if let Some((created, written)) = head.times {
        out.extend(created.to_be_bytes());
        out.extend(written.to_be_bytes());
    }
    varint(batches.len() + 1, &mut out);
    for (batch, tags) in batches {
        out.extend(batch.first.to_be_bytes());
        out.extend(batch.last.to_be_bytes());
        out.extend(batch.state.to_be_bytes());
        out.extend(batch.delivery_count.to_be_bytes());
        put_tags(tags, &mut out);
    }
    let mut all = tags.clone();
    if head.delivery_complete_count != -1 {
        let count = head.delivery_complete_count.to_be_bytes();
        all.insert(0, (0, count.to_vec()));
    }
    put_tags(&all, &mut out);
    out
}

fn kind(head: &Head) -> Kind {
    head.state_epoch.map_or(Kind::Update, |_| Kind::Snapshot)
}

proptest! {
    #[test]
    fn what_was_written_is_read(head in head(), batches in batches(), tags in tags()) {
        let bytes = written(&head, &batches, &tags);
        let mut found = Vec::new();
        prop_assert_eq!(read_value(kind(&head), &bytes, &mut found), Ok(head));
        let given: Vec<_> = batches.iter().map(|(batch, _)| *batch).collect();
        prop_assert_eq!(&found, &given);
        for size in (0..bytes.len()).step_by(1 + bytes.len() / 64) {
            let cut = read_value(kind(&head), &bytes[..size], &mut found);
            prop_assert!(matches!(cut, Err(RecordFault::Value(_))), "{:?}", cut);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, snapshot: bool) {
        let kind = if snapshot { Kind::Snapshot } else { Kind::Update };
        let mut found = Vec::new();
        let _ = read_value(kind, &bytes, &mut found);
        let _ = read_value(kind, &[&[0, 0], &bytes[..]].concat(), &mut found);
        prop_assert!(found.len() * 20 <= bytes.len());
        if let Ok((_, key)) = Key::read(&bytes) {
            prop_assert_eq!(key.group.len() + 24, bytes.len());
        }
    }
}
