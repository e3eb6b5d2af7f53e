//! The worked examples of KIP-932, step by step.

use sharecore_engine::{
    AckBatch, AcquireOptions, Config, OffsetRange, Partition, RecordState, StateBatch,
};

const ACCEPT: u8 = 1;
const RELEASE: u8 = 2;
const REJECT: u8 = 3;

/// A partition, driven in the terms of the examples.
struct Example(Partition);

impl Example {
    fn at(start_offset: i64) -> Self {
        Self(Partition::new(Config::default(), start_offset, &[]).expect("empty state"))
    }

    fn fetch(&mut self, now_ms: i64, member: &str, batches: &[(i64, i64)]) -> Vec<(i64, i64, u16)> {
        let ranges: Vec<_> = batches
            .iter()
            .map(|&(first, last)| OffsetRange::new(first, last))
            .collect();
        let options = AcquireOptions {
            fetch_offset: ranges[0].first,
            max_fetch_records: 500,
            batch_size: 500,
            record_limit: false,
        };
        let mut out = Vec::new();
        self.0.acquire(now_ms, member, &ranges, options, &mut out);
        self.0.check().expect("invariants");
        out.iter()
            .map(|a| (a.first, a.last, a.delivery_count))
            .collect()
    }

    fn acknowledge(&mut self, member: &str, first: i64, last: i64, types: &[u8]) {
        let write = self
            .0
            .acknowledge(0, member, &[AckBatch { first, last, types }])
            .expect("accepted");
        let write = write.expect("something changed").id;
        self.0.commit(write).expect("open");
        self.0.check().expect("invariants");
    }

    fn pass_time_to(&mut self, now_ms: i64) {
        if let Some(write) = self.0.advance(now_ms).map(|write| write.id) {
            self.0.commit(write).expect("open");
        }
        self.0.check().expect("invariants");
    }

    fn sees(&self, start: i64, end: i64, records: &[(i64, i64, RecordState, u16)]) {
        let inflight: Vec<_> = self
            .0
            .inflight()
            .iter()
            .map(|run| (run.first, run.last, run.state, run.delivery_count))
            .collect();
        assert_eq!(inflight, records);
        assert_eq!((self.0.start_offset(), self.0.end_offset()), (start, end));
    }
}

#[test]
fn a_batch_is_delivered_and_acknowledged_as_a_whole() {
    let mut example = Example::at(100);
    example.sees(100, 100, &[]);
    assert_eq!(example.fetch(0, "c", &[(100, 109)]), [(100, 109, 1)]);
    example.sees(100, 109, &[(100, 109, RecordState::Acquired, 1)]);
    example.acknowledge("c", 100, 109, &[ACCEPT]);
    example.sees(110, 110, &[]);
}

#[test]
fn three_consumers_release_acknowledge_and_run_out_of_time() {
    use RecordState::{Acknowledged, Acquired, Available};
    let mut example = Example::at(110);
    assert_eq!(example.fetch(0, "c1", &[(110, 112)]), [(110, 112, 1)]);
    assert_eq!(example.fetch(10_000, "c2", &[(113, 118)]), [(113, 118, 1)]);
    assert_eq!(example.fetch(10_000, "c3", &[(119, 119)]), [(119, 119, 1)]);
    example.sees(110, 119, &[(110, 119, Acquired, 1)]);

    example.acknowledge("c1", 110, 110, &[RELEASE]);
    example.sees(
        110,
        119,
        &[(110, 110, Available, 1), (111, 119, Acquired, 1)],
    );

    example.acknowledge("c3", 119, 119, &[ACCEPT]);
    example.sees(
        110,
        119,
        &[
            (110, 110, Available, 1),
            (111, 118, Acquired, 1),
            (119, 119, Acknowledged, 1),
        ],
    );

    assert_eq!(example.0.next_fetch_offset(), 110);
    let log = [(110, 112), (113, 118), (119, 119), (120, 120)];
    assert_eq!(
        example.fetch(20_000, "c1", &log),
        [(110, 110, 2), (120, 120, 1)]
    );
    let acknowledged = (119, 119, Acknowledged, 1);
    let last = (120, 120, Acquired, 1);
    example.sees(
        110,
        120,
        &[
            (110, 110, Acquired, 2),
            (111, 118, Acquired, 1),
            acknowledged,
            last,
        ],
    );

    example.pass_time_to(30_000);
    let first = (110, 110, Acquired, 2);
    let middle = (113, 118, Acquired, 1);
    example.sees(
        110,
        120,
        &[first, (111, 112, Available, 1), middle, acknowledged, last],
    );

    example.acknowledge("c2", 113, 118, &[ACCEPT]);
    let settled = (113, 119, Acknowledged, 1);
    example.sees(110, 120, &[first, (111, 112, Available, 1), settled, last]);

    assert_eq!(example.0.next_fetch_offset(), 111);
    assert_eq!(example.fetch(30_000, "c3", &[(110, 112)]), [(111, 112, 2)]);
    example.sees(110, 120, &[(110, 112, Acquired, 2), settled, last]);

    example.acknowledge("c1", 110, 110, &[ACCEPT]);
    example.sees(111, 120, &[(111, 112, Acquired, 2), settled, last]);

    example.acknowledge("c3", 111, 112, &[ACCEPT]);
    example.sees(120, 120, &[last]);
}

#[test]
fn the_window_between_start_and_end_offset() {
    use RecordState::{Acknowledged, Acquired, Archived, Available};
    let mut example = Example::at(0);
    // deliveries: record 3 twice, 2 and 4 once, 7 and 8 never; 5 is accepted, 6 rejected
    assert_eq!(example.fetch(0, "a", &[(0, 1), (2, 6)]), [(0, 6, 1)]);
    example.acknowledge("a", 0, 1, &[REJECT]);
    example.acknowledge("a", 3, 3, &[RELEASE]);
    assert_eq!(example.fetch(0, "b", &[(2, 6)]), [(3, 3, 2)]);
    example.acknowledge("b", 3, 3, &[RELEASE]);
    example.acknowledge("a", 5, 6, &[ACCEPT, REJECT]);
    let mut out = Vec::new();
    let options = AcquireOptions {
        fetch_offset: 7,
        max_fetch_records: 1,
        batch_size: 500,
        record_limit: true,
    };
    example
        .0
        .acquire(0, "c", &[OffsetRange::new(7, 8)], options, &mut out);
    assert_eq!(
        out.iter().map(|a| (a.first, a.last)).collect::<Vec<_>>(),
        [(7, 7)]
    );
    example.acknowledge("c", 7, 7, &[RELEASE]);
    let records = [
        (2, 2, Acquired, 1),
        (3, 3, Available, 2),
        (4, 4, Acquired, 1),
        (5, 5, Acknowledged, 1),
        (6, 6, Archived, 1),
        (7, 7, Available, 1),
        (8, 8, Available, 0),
    ];
    example.sees(2, 8, &records);
    assert_eq!(example.0.next_fetch_offset(), 3);
    assert_eq!(example.0.delivery_complete_count(), 2);
}

#[test]
fn what_was_acknowledged_survives_a_restart_and_what_was_leased_does_not() {
    use RecordState::{Acknowledged, Acquired, Archived, Available};
    let state = |first, last, state, delivery_count| StateBatch {
        first,
        last,
        state,
        delivery_count,
    };
    // The durable state of the previous example: start offset, delivery count of 3, end of 5 and 6
    let durable = [
        state(3, 3, Available, 2),
        state(5, 5, Acknowledged, 1),
        state(6, 6, Archived, 1),
    ];
    let mut example = Example(Partition::new(Config::default(), 2, &durable).expect("sound state"));
    assert_eq!(example.0.next_fetch_offset(), 2);
    assert_eq!(
        example.fetch(0, "d", &[(2, 6), (7, 9)]),
        [(2, 2, 1), (3, 3, 3), (4, 4, 1), (7, 9, 1)]
    );
    assert_eq!(example.0.next_fetch_offset(), 10);
    let settled = [(5, 5, Acknowledged, 1), (6, 6, Archived, 1)];
    let leased = [
        (2, 2, Acquired, 1),
        (3, 3, Acquired, 3),
        (4, 4, Acquired, 1),
    ];
    example.sees(
        2,
        9,
        &[leased.as_slice(), &settled, &[(7, 9, Acquired, 1)]].concat(),
    );
}
