//! Partitions with rules through the C functions: order by key, back-off, delivery times and refusals.

use std::ptr::null;

use sharecore::*;

const EVERY: SharecoreFetch = SharecoreFetch {
    fetch_offset: 0,
    max_fetch_records: 500,
    batch_size: 500,
    record_limit: false,
};
const NOW: (i64, i64) = (1_000, 1_700_000_000_000);

fn ok(status: SharecoreStatus) {
    assert_eq!(status, SharecoreStatus::Ok);
}

fn rules(change: impl FnOnce(&mut SharecoreRules)) -> SharecoreRules {
    let mut rules = std::mem::MaybeUninit::uninit();
    ok(unsafe { sharecore_rules_default(rules.as_mut_ptr()) });
    let mut rules = unsafe { rules.assume_init() };
    change(&mut rules);
    rules
}

fn config() -> SharecoreConfig {
    let mut config = std::mem::MaybeUninit::uninit();
    ok(unsafe { sharecore_config_default(config.as_mut_ptr()) });
    unsafe { config.assume_init() }
}

fn load(rules: &SharecoreRules, state: &[SharecoreStateBatch]) -> SharecorePartition {
    let mut partition = 0;
    ok(unsafe {
        sharecore_load_managed(
            &config(),
            rules,
            NOW.0,
            0,
            state.as_ptr(),
            state.len(),
            &raw mut partition,
        )
    });
    partition
}

fn entry(offset: i64, digest: u64) -> SharecoreEntry {
    SharecoreEntry {
        offset,
        not_before_ms: i64::MIN,
        expires_ms: i64::MAX,
        digest,
    }
}

fn wanted(partition: SharecorePartition, (now_ms, wall_ms): (i64, i64)) -> SharecoreWanted {
    let mut wanted = SharecoreWanted {
        offset: 0,
        max_records: 0,
        admits: false,
    };
    ok(unsafe { sharecore_wanted(partition, now_ms, wall_ms, &raw mut wanted) });
    wanted
}

/// Admits a batch of `last + 1` records.
fn admit(partition: SharecorePartition, entries: &[SharecoreEntry], last: i64) -> bool {
    let batch = SharecoreRange { first: 0, last };
    let mut admitted = false;
    ok(unsafe {
        sharecore_admit(
            partition,
            NOW.0,
            NOW.1,
            0,
            &raw const batch,
            1,
            entries.as_ptr(),
            entries.len(),
            500,
            &raw mut admitted,
        )
    });
    admitted
}

fn acquire(partition: SharecorePartition, member: &str, last: i64) -> Vec<i64> {
    let mut out = [SharecoreAcquired {
        first: 0,
        last: 0,
        delivery_count: 0,
    }; 10];
    let batch = SharecoreRange { first: 0, last };
    let mut count = 0;
    let (name, length) = (member.as_ptr().cast(), member.len());
    ok(unsafe {
        sharecore_acquire(
            partition,
            NOW.0,
            name,
            length,
            &raw const batch,
            1,
            &EVERY,
            out.as_mut_ptr(),
            out.len(),
            &raw mut count,
        )
    });
    out[..count]
        .iter()
        .flat_map(|each| each.first..=each.last)
        .collect()
}

/// Acknowledges one record and commits the result at `now_ms`.
fn settle(partition: SharecorePartition, member: &str, offset: i64, kind: u8, now_ms: i64) {
    let batch = SharecoreAcknowledgement {
        first: offset,
        last: offset,
        types: &raw const kind,
        type_count: 1,
    };
    let mut write = SharecoreWrite::default();
    let (name, length) = (member.as_ptr().cast(), member.len());
    ok(unsafe {
        sharecore_acknowledge(
            partition,
            now_ms,
            name,
            length,
            &raw const batch,
            1,
            &raw mut write,
        )
    });
    ok(sharecore_commit_at(partition, write.id, now_ms));
    ok(sharecore_check(partition));
}

fn waiting(partition: SharecorePartition) -> SharecoreWaiting {
    let mut waiting = std::mem::MaybeUninit::uninit();
    ok(unsafe { sharecore_waiting(partition, waiting.as_mut_ptr()) });
    unsafe { waiting.assume_init() }
}

#[test]
fn records_of_a_key_come_one_after_the_other() {
    let partition = load(
        &rules(|rules| {
            rules.ordering = 1;
            rules.looks_for = 1;
        }),
        &[],
    );
    let first = wanted(partition, NOW);
    assert_eq!((first.offset, first.admits), (0, true));
    let entries = [entry(0, 7), entry(1, 8), entry(2, 7), entry(3, 0)];
    assert!(admit(partition, &entries, 3));
    assert!(!admit(partition, &entries, 3), "they were taken in before");
    assert_eq!(acquire(partition, "m", 3), [0, 1, 3]);
    let found = waiting(partition);
    assert_eq!((found.behind, found.leased), (1, 3));
    settle(partition, "m", 0, 2, NOW.0);
    assert_eq!(acquire(partition, "n", 3), [0], "it was released");
    settle(partition, "n", 0, 1, NOW.0);
    assert_eq!(
        wanted(partition, NOW),
        SharecoreWanted {
            offset: 2,
            max_records: i64::MAX,
            admits: false
        }
    );
    assert_eq!(acquire(partition, "n", 3), [2]);
    ok(sharecore_free(partition));
}

#[test]
fn times_are_waited_for_and_a_load_begins_them_anew() {
    let backoff = rules(|rules| {
        rules.backoff_ms = 1_000;
        rules.jitter = 0.0;
    });
    let delivered = SharecoreStateBatch {
        first: 0,
        last: 0,
        state: 0,
        delivery_count: 2,
    };
    let partition = load(&backoff, &[delivered]);
    let found = waiting(partition);
    assert_eq!((found.backoff, found.next_time_ms), (1, NOW.0 + 2_000));
    let mut write = SharecoreWrite::default();
    ok(unsafe { sharecore_advance_at(partition, NOW.0 + 1_999, NOW.1, &raw mut write) });
    assert_eq!(acquire(partition, "m", 0), [0_i64; 0]);
    ok(unsafe { sharecore_advance_at(partition, NOW.0 + 2_000, NOW.1, &raw mut write) });
    assert_eq!((write.id, acquire(partition, "m", 0)), (0, vec![0]));
    settle(partition, "m", 0, 2, NOW.0 + 3_000);
    assert_eq!(
        waiting(partition).next_time_ms,
        NOW.0 + 7_000,
        "the third wait"
    );

    let partition = load(&rules(|rules| rules.looks_for = 1), &[]);
    let late = SharecoreEntry {
        not_before_ms: NOW.1 + 500,
        ..entry(0, 0)
    };
    assert!(admit(partition, &[late], 0));
    assert_eq!(acquire(partition, "m", 0), [0_i64; 0]);
    assert_eq!(waiting(partition).next_wall_ms, NOW.1 + 500);
    assert_eq!(wanted(partition, (NOW.0, NOW.1 + 500)).offset, 0);
    assert_eq!(acquire(partition, "m", 0), [0]);
}

#[test]
fn rules_come_and_go_and_what_has_no_time_is_refused() {
    let whole = rules(|rules| rules.ordering = 2);
    let partition = load(&whole, &[]);
    assert_eq!(acquire(partition, "m", 3), [0]);
    let mut write = SharecoreWrite::default();
    let bad = SharecoreStatus::BadArgument;
    assert_eq!(
        unsafe { sharecore_advance(partition, 0, &raw mut write) },
        bad
    );
    assert_eq!(sharecore_commit(partition, 1), bad);
    ok(unsafe { sharecore_set_rules(partition, null()) });
    assert_eq!(acquire(partition, "n", 3), [1, 2, 3]);
    ok(unsafe { sharecore_advance(partition, 0, &raw mut write) });
    let mut admitted = false;
    let entries = [entry(0, 0)];
    let status = unsafe {
        sharecore_admit(
            partition,
            0,
            0,
            0,
            null(),
            0,
            entries.as_ptr(),
            1,
            1,
            &raw mut admitted,
        )
    };
    assert_eq!(status, bad, "it has no rules");
    for wrong in [
        rules(|rules| rules.ordering = 3),
        rules(|rules| rules.ordering = 1),
        rules(|rules| rules.run_max = 0),
        rules(|rules| rules.backoff_ms = 300_001),
        rules(|rules| rules.multiplier = f64::NAN),
        rules(|rules| rules.jitter = 1.5),
    ] {
        assert_eq!(
            unsafe { sharecore_set_rules(partition, &raw const wrong) },
            bad,
            "{wrong:?}"
        );
    }
}

fn details(partition: SharecorePartition) -> SharecoreWaitingDetails {
    let mut details = std::mem::MaybeUninit::uninit();
    ok(unsafe { sharecore_waiting_details(partition, details.as_mut_ptr()) });
    unsafe { details.assume_init() }
}

fn create(rules: &SharecoreRules) -> SharecorePartition {
    let mut partition = 0;
    ok(unsafe { sharecore_create_managed(&config(), rules, 0, &raw mut partition) });
    partition
}

#[test]
fn a_partition_says_why_its_records_wait() {
    let partition = create(&rules(|rules| {
        rules.ordering = 1;
        rules.looks_for = 1;
        rules.backoff_ms = 1_000;
        rules.jitter = 0.0;
        rules.max_waiting = 3;
    }));
    let late = SharecoreEntry {
        not_before_ms: NOW.1 + 500,
        ..entry(4, 0)
    };
    let entries = [entry(0, 7), entry(1, 8), entry(2, 7), entry(3, 7), late];
    assert!(admit(partition, &entries, 4));
    assert_eq!(acquire(partition, "m", 4), [0, 1]);
    settle(partition, "m", 0, 2, NOW.0);
    assert_eq!(
        details(partition),
        SharecoreWaitingDetails {
            backoff: 1,
            backoff_due_ms: NOW.0 + 1_000,
            delivery: 1,
            delivery_due_ms: NOW.1 + 500,
            unread: 0,
            behind: 2,
            keys: 2,
            leased: 1,
            kept: 0,
            units: 3,
            is_full: true,
            is_in_line: false,
            ordering: 1,
        }
    );
    let mut found = [SharecoreKey {
        digest: 0,
        records: 0,
        first: 0,
    }; 2];
    let mut count = 0;
    ok(unsafe { sharecore_keys(partition, found.as_mut_ptr(), 1, &raw mut count) });
    let (largest, second) = (
        SharecoreKey {
            digest: 7,
            records: 3,
            first: 0,
        },
        SharecoreKey {
            digest: 8,
            records: 1,
            first: 1,
        },
    );
    assert_eq!((count, found[0], found[1].digest), (1, largest, 0));
    ok(unsafe { sharecore_keys(partition, found.as_mut_ptr(), 2, &raw mut count) });
    assert_eq!((count, found), (2, [largest, second]));
    ok(unsafe { sharecore_set_rules(partition, null()) });
    ok(unsafe { sharecore_keys(partition, found.as_mut_ptr(), 2, &raw mut count) });
    let plain = details(partition);
    assert_eq!((count, plain.ordering, plain.leased), (0, 0, 1));
    assert_eq!((plain.backoff, plain.backoff_due_ms), (0, i64::MAX));
}

#[test]
fn locks_of_a_connected_member_last_and_a_partition_in_line_says_so() {
    let partition = create(&rules(|rules| rules.ordering = 2));
    assert_eq!(acquire(partition, "m", 3), [0]);
    let keep = |now_ms, max_ms| {
        let name = "m".as_ptr().cast();
        unsafe { sharecore_keep_locks(partition, now_ms, name, 1, max_ms) }
    };
    assert_eq!(keep(NOW.0, 0), SharecoreStatus::BadArgument);
    let lock_ms = config().lock_ms;
    let expired = NOW.0 + lock_ms;
    ok(keep(expired, 2 * lock_ms));
    let mut write = SharecoreWrite::default();
    ok(unsafe { sharecore_advance_at(partition, expired, NOW.1, &raw mut write) });
    let kept = details(partition);
    assert_eq!((kept.leased, kept.kept), (1, 1));
    assert_eq!((kept.ordering, kept.is_in_line), (2, true));
    ok(keep(expired + lock_ms, 2 * lock_ms));
    ok(unsafe { sharecore_advance_at(partition, expired + lock_ms, NOW.1, &raw mut write) });
    ok(sharecore_commit_at(partition, write.id, expired + lock_ms));
    assert_eq!(details(partition).leased, 0, "no longer than that");
}
