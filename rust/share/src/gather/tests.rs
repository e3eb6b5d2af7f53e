use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Partitions with their number of records, of 10 bytes each.
struct FakePartitions {
    partitions: VecDeque<(usize, Readiness, i64)>,
    looked_at: Vec<usize>,
    emptied: Vec<usize>,
    failed: Vec<usize>,
    acquired: Vec<(usize, i64)>,
    /// The partition whose acquisition fails.
    breaks_at: Option<usize>,
    reading_bytes: i64,
}

const BYTES: i64 = 10;

impl FakePartitions {
    fn of(partitions: &[(Readiness, i64)]) -> Self {
        let numbered = partitions.iter().enumerate();
        Self {
            partitions: numbered
                .map(|(at, (readiness, records))| (at, *readiness, *records))
                .collect(),
            looked_at: Vec::new(),
            emptied: Vec::new(),
            failed: Vec::new(),
            acquired: Vec::new(),
            breaks_at: None,
            reading_bytes: 0,
        }
    }
}

impl Partitions for FakePartitions {
    type Partition = (usize, Readiness, i64);
    type Error = usize;

    fn next(&mut self) -> Option<Self::Partition> {
        let next = self.partitions.pop_front();
        self.looked_at.extend(next.map(|(at, ..)| at));
        next
    }

    fn readiness(&mut self, partition: &Self::Partition) -> Result<Readiness, usize> {
        Ok(partition.1)
    }

    fn empty(&mut self, partition: &Self::Partition) -> Result<(), usize> {
        self.emptied.push(partition.0);
        Ok(())
    }

    fn failed(&mut self, partition: Self::Partition) {
        self.failed.push(partition.0);
    }

    fn acquire(
        &mut self,
        (at, _, records): Self::Partition,
        ration: Ration,
        _limits: &Limits,
    ) -> Result<Given, usize> {
        if self.breaks_at == Some(at) {
            return Err(at);
        }
        let fit = (ration.max_bytes / BYTES).max(i64::from(ration.at_least_one));
        let records = records.min(ration.max_records).min(fit);
        self.acquired.push((at, records));
        Ok(Given {
            bytes: usize::try_from(records * BYTES).expect("a size"),
            records,
            reading_bytes: std::mem::take(&mut self.reading_bytes),
        })
    }
}

fn limits(max_records: i64, max_bytes: i64) -> Limits {
    Limits {
        min_bytes: 1,
        max_bytes,
        max_records,
        batch_size: 10,
        record_limit: true,
    }
}

use Readiness::{Empty, Failed, Loading, Ready};

#[test]
fn who_has_nothing_is_known() {
    let mut fake = FakePartitions::of(&[(Loading, 0), (Empty, 0), (Failed, 0), (Ready, 3)]);
    assert_eq!(gather(&mut fake, &limits(10, 1_000)), Ok(()));
    assert_eq!(fake.emptied, [1]);
    assert_eq!(fake.failed, [2]);
    assert_eq!(fake.acquired, [(3, 3)]);
}

#[test]
fn no_more_are_looked_at_than_records_are_wanted() {
    let mut fake = FakePartitions::of(&[(Ready, 5); 4]);
    assert_eq!(gather(&mut fake, &limits(2, 1_000)), Ok(()));
    assert_eq!(fake.looked_at, [0, 1]);
    assert_eq!(fake.acquired, [(0, 2)], "the first had enough");
}

#[test]
fn each_that_has_something_has_its_part_of_the_bytes() {
    let mut fake = FakePartitions::of(&[(Ready, 100), (Ready, 100)]);
    assert_eq!(gather(&mut fake, &limits(500, 400)), Ok(()));
    assert_eq!(fake.acquired, [(0, 20), (1, 20)]);
}

#[test]
fn a_record_that_is_too_large_is_taken_alone() {
    let mut fake = FakePartitions::of(&[(Ready, 3), (Ready, 3)]);
    assert_eq!(gather(&mut fake, &limits(500, 4)), Ok(()));
    assert_eq!(fake.acquired, [(0, 1)], "it stands in nobody's way");
}

#[test]
fn what_is_being_read_has_its_room() {
    let mut fake = FakePartitions::of(&[(Ready, 0), (Ready, 100)]);
    fake.reading_bytes = 390;
    assert_eq!(gather(&mut fake, &limits(500, 400)), Ok(()));
    assert_eq!(fake.acquired, [(0, 0), (1, 1)]);
}

#[test]
fn an_error_ends_the_look() {
    let mut fake = FakePartitions::of(&[(Ready, 1), (Ready, 1), (Ready, 1)]);
    fake.breaks_at = Some(1);
    assert_eq!(gather(&mut fake, &limits(500, 400)), Err(1));
    assert_eq!(fake.acquired, [(0, 1)]);
}

fn readiness() -> impl Strategy<Value = Readiness> {
    prop_oneof![Just(Ready), Just(Empty), Just(Failed), Just(Loading)]
}

proptest! {
    #[test]
    fn nobody_gets_more_than_asked_for_and_nothing_is_left_for_no_reason(
        partitions in vec((readiness(), 0_i64..50), 0..12),
        max_records in 1_i64..60,
        max_bytes in 1_i64..600,
    ) {
        let mut fake = FakePartitions::of(&partitions);
        prop_assert_eq!(gather(&mut fake, &limits(max_records, max_bytes)), Ok(()));
        let total: i64 = fake.acquired.iter().map(|(_, records)| records).sum();
        prop_assert!(total <= max_records);
        prop_assert!(total * BYTES <= max_bytes || total == 1);
        let mut order = fake.acquired.clone();
        order.sort_unstable();
        prop_assert_eq!(&order, &fake.acquired, "in their order");
        for (at, _) in &fake.acquired {
            prop_assert_eq!(partitions[*at].0, Ready);
        }
        let any = partitions.iter().any(|(readiness, records)| *readiness == Ready && *records > 0);
        let first_has = fake.acquired.first().is_some_and(|(at, _)| partitions[*at].1 > 0);
        if any && first_has {
            prop_assert!(total > 0, "there was something");
        }
    }
}
