//! The C functions as C calls them: results and refusals.
#![allow(
    clippy::borrow_as_ptr,
    clippy::cast_ptr_alignment,
    reason = "a test of pointers, crooked ones too"
)]

use std::ptr::{null, null_mut};
use std::sync::Barrier;
use std::thread;

use sharecore::*;

const FETCH: SharecoreFetch = SharecoreFetch {
    fetch_offset: 0,
    max_fetch_records: 500,
    batch_size: 500,
    record_limit: false,
};

fn config() -> SharecoreConfig {
    let mut config = SharecoreConfig {
        max_delivery_count: 0,
        renew_enabled: false,
        dead_letters: false,
        max_inflight: 0,
        lock_ms: 0,
    };
    assert_eq!(
        unsafe { sharecore_config_default(&raw mut config) },
        SharecoreStatus::Ok
    );
    config
}

fn create() -> SharecorePartition {
    let mut partition = 0;
    let status = unsafe { sharecore_create(&config(), 0, &raw mut partition) };
    assert_eq!(status, SharecoreStatus::Ok);
    assert_ne!(partition, 0);
    partition
}

fn message() -> String {
    let mut out = vec![1_u8; unsafe { sharecore_last_error(null_mut(), 0) }];
    let length = unsafe { sharecore_last_error(out.as_mut_ptr().cast(), out.len()) };
    assert_eq!((length, out.pop()), (out.len() + 1, Some(0)));
    String::from_utf8(out).expect("UTF-8")
}

/// Acquires `0..=9`, `20..=29`, and so on.
fn acquire(
    partition: SharecorePartition,
    member: &str,
    batches: usize,
    out: &mut [SharecoreAcquired],
) -> (SharecoreStatus, usize) {
    let batches: Vec<_> = (0..batches as i64)
        .map(|n| SharecoreRange {
            first: n * 20,
            last: n * 20 + 9,
        })
        .collect();
    let mut fetch = FETCH;
    fetch.batch_size = 1;
    let mut count = usize::MAX;
    let status = unsafe {
        sharecore_acquire(
            partition,
            0,
            member.as_ptr().cast(),
            member.len(),
            batches.as_ptr(),
            batches.len(),
            &raw const fetch,
            out.as_mut_ptr(),
            out.len(),
            &raw mut count,
        )
    };
    (status, count)
}

fn acknowledge(
    partition: SharecorePartition,
    member: &str,
    first: i64,
    last: i64,
    types: &[u8],
) -> (SharecoreStatus, SharecoreWrite) {
    let batch = SharecoreAcknowledgement {
        first,
        last,
        types: types.as_ptr(),
        type_count: types.len(),
    };
    let mut write = SharecoreWrite::default();
    let status = unsafe {
        sharecore_acknowledge(
            partition,
            1,
            member.as_ptr().cast(),
            member.len(),
            &raw const batch,
            1,
            &raw mut write,
        )
    };
    (status, write)
}

fn inflight(partition: SharecorePartition) -> Vec<(i64, i64, u8, u16)> {
    let none = SharecoreStateBatch {
        first: 0,
        last: 0,
        state: 0,
        delivery_count: 0,
    };
    let (mut out, mut count) = (vec![none; 100], 0);
    let status =
        unsafe { sharecore_inflight(partition, out.as_mut_ptr(), out.len(), &raw mut count) };
    assert_eq!(status, SharecoreStatus::Ok);
    assert_eq!(sharecore_check(partition), SharecoreStatus::Ok);
    let each = out[..count].iter();
    each.map(|b| (b.first, b.last, b.state, b.delivery_count))
        .collect()
}

const NOTHING: SharecoreAcquired = SharecoreAcquired {
    first: -1,
    last: -1,
    delivery_count: 0,
};

#[test]
fn a_write_is_kept_until_it_ends() {
    let partition = create();
    let mut out = [NOTHING; 4];
    assert_eq!(
        acquire(partition, "m", 1, &mut out),
        (SharecoreStatus::Ok, 1)
    );
    let (status, write) = acknowledge(partition, "m", 0, 2, &[1, 2, 3]);
    assert_eq!((status, write.batch_count), (SharecoreStatus::Ok, 3));
    let mut batches = [SharecoreStateBatch {
        first: 0,
        last: 0,
        state: 0,
        delivery_count: 0,
    }; 3];
    let mut count = 0;
    let mut read = |capacity: usize, count: &mut usize| unsafe {
        sharecore_write_batches(
            partition,
            write.id,
            batches.as_mut_ptr(),
            capacity,
            &raw mut *count,
        )
    };
    assert_eq!(read(2, &mut count), SharecoreStatus::TooSmall);
    assert_eq!(count, 3);
    assert_eq!(message(), "the array holds 2 elements, 3 are needed");
    assert_eq!(read(3, &mut count), SharecoreStatus::Ok);
    assert_eq!(sharecore_commit(partition, write.id), SharecoreStatus::Ok);
    assert_eq!(read(3, &mut count), SharecoreStatus::InvalidRequest);
    assert_eq!(
        sharecore_commit(partition, write.id),
        SharecoreStatus::InvalidRequest
    );
    assert_eq!(
        sharecore_rollback(partition, write.id, 2),
        SharecoreStatus::InvalidRequest
    );
    assert_eq!(batches.map(|b| b.state), [2, 0, 4]);
    assert_eq!(
        inflight(partition),
        [(1, 1, 0, 1), (2, 2, 4, 1), (3, 9, 1, 1)]
    );
    assert_eq!(sharecore_free(partition), SharecoreStatus::Ok);
}

#[test]
fn what_was_leased_is_not_lost_with_an_array_that_is_too_small() {
    let partition = create();
    let mut out = [NOTHING; 2];
    assert_eq!(
        acquire(partition, "m", 3, &mut out),
        (SharecoreStatus::TooSmall, 3)
    );
    assert_eq!(out.map(|a| a.first), [0, 20]);
    let (mut all, mut count) = ([NOTHING; 3], 0);
    let status = unsafe { sharecore_acquired(all.as_mut_ptr(), 3, &raw mut count) };
    assert_eq!((status, count), (SharecoreStatus::Ok, 3));
    assert_eq!(all.map(|a| a.first), [0, 20, 40]);
    assert_eq!(sharecore_free(partition), SharecoreStatus::Ok);
}

#[test]
fn refusals_have_kafkas_codes_and_words() {
    let partition = create();
    let mut out = [NOTHING; 1];
    acquire(partition, "m", 1, &mut out);
    let (status, _) = acknowledge(partition, "stranger", 0, 9, &[1]);
    assert_eq!(status, SharecoreStatus::InvalidRecordState);
    assert_eq!(message(), "offset 0 is not leased to this member");
    let (status, _) = acknowledge(partition, "m", 0, 9, &[7]);
    assert_eq!(status, SharecoreStatus::InvalidRequest);
    assert_eq!(inflight(partition), [(0, 9, 1, 1)]);
    assert_eq!(sharecore_free(partition), SharecoreStatus::Ok);
}

#[test]
fn a_partition_is_freed_once_and_its_number_never_comes_back() {
    let mut freed = vec![0, 1, u64::MAX];
    for _ in 0..100 {
        let partition = create();
        assert!(!freed.contains(&partition));
        assert_eq!(sharecore_free(partition), SharecoreStatus::Ok);
        freed.push(partition);
    }
    for partition in freed {
        assert_eq!(sharecore_free(partition), SharecoreStatus::BadPartition);
        assert_eq!(
            sharecore_commit(partition, 1),
            SharecoreStatus::BadPartition
        );
        assert_eq!(
            acquire(partition, "m", 1, &mut [NOTHING]).0,
            SharecoreStatus::BadPartition
        );
    }
    assert_eq!(sharecore_free(0), SharecoreStatus::BadPartition);
    assert_eq!(message(), "the partition is null");
}

#[test]
fn null_and_crooked_pointers_are_refused_and_change_nothing() {
    use SharecoreStatus::{BadArgument, BadPointer};
    let partition = create();
    let mut out = [NOTHING; 1];
    acquire(partition, "m", 1, &mut out);
    let (name, range) = (c"m".as_ptr(), SharecoreRange { first: 0, last: 9 });
    let (mut write, mut count) = (SharecoreWrite::default(), 0_usize);
    let (out, count, write) = (out.as_mut_ptr(), &raw mut count, &raw mut write);
    let crooked = unsafe { out.cast::<u8>().add(1).cast::<SharecoreAcquired>() };
    let ack = SharecoreAcknowledgement {
        first: 0,
        last: 9,
        types: null(),
        type_count: 10,
    };
    unsafe {
        let take = |name, batches, fetch, out, count| {
            sharecore_acquire(partition, 0, name, 1, batches, 1, fetch, out, 1, count)
        };
        assert_eq!(take(null(), &range, &FETCH, out, count), BadPointer);
        assert_eq!(take(name, null(), &FETCH, out, count), BadPointer);
        assert_eq!(take(name, &range, null(), out, count), BadPointer);
        assert_eq!(take(name, &range, &FETCH, null_mut(), count), BadPointer);
        assert_eq!(take(name, &range, &FETCH, crooked, count), BadPointer);
        assert!(message().contains("not aligned"));
        assert_eq!(take(name, &range, &FETCH, out, null_mut()), BadPointer);
        assert_eq!(
            take(c"\xff".as_ptr(), &range, &FETCH, out, count),
            BadArgument
        );
        let wide = sharecore_acquire(
            partition,
            0,
            name,
            1,
            &raw const range,
            usize::MAX,
            &FETCH,
            out,
            1,
            count,
        );
        assert_eq!(wide, BadArgument);
        for (first, last) in [(-1, 3), (5, 4), (0, 1 << 32), (i64::MAX, i64::MAX)] {
            let odd = SharecoreRange { first, last };
            assert_eq!(take(name, &odd, &FETCH, out, count), BadArgument);
        }
        let status = sharecore_acknowledge(partition, 0, name, 1, &raw const ack, 1, write);
        assert_eq!(status, BadPointer);
        assert_eq!(message(), "types is null");
        assert_eq!(
            sharecore_release(partition, name, 1, null_mut()),
            BadPointer
        );
        assert_eq!(
            sharecore_advance(partition, i64::MAX, null_mut()),
            BadPointer
        );
        assert_eq!(sharecore_inspect(partition, null_mut()), BadPointer);
        assert_eq!(sharecore_configure(partition, null()), BadPointer);
        assert_eq!(sharecore_create(&config(), 0, null_mut()), BadPointer);
        assert_eq!(sharecore_create(null(), 0, &mut 0), BadPointer);
        assert_eq!(sharecore_config_default(null_mut()), BadPointer);
    }
    assert_eq!(inflight(partition), [(0, 9, 1, 1)]);
    assert_eq!(sharecore_free(partition), SharecoreStatus::Ok);
}

#[test]
fn arguments_that_no_request_can_hold_are_refused() {
    use SharecoreStatus::{BadArgument, InvalidRequest};
    let (mut limits, mut partition) = (config(), 7);
    limits.lock_ms = 0;
    let status = unsafe { sharecore_create(&raw const limits, 0, &raw mut partition) };
    assert_eq!((status, partition), (BadArgument, 0));
    let load = |batch: SharecoreStateBatch| unsafe {
        sharecore_load(&config(), 3, &raw const batch, 1, &mut 0)
    };
    let batch = SharecoreStateBatch {
        first: 5,
        last: 6,
        state: 5,
        delivery_count: 1,
    };
    assert_eq!(load(batch), BadArgument);
    assert_eq!(message(), "unknown record state 5; must be 0 to 4");
    assert_eq!(
        load(SharecoreStateBatch { state: 1, ..batch }),
        InvalidRequest
    );
    assert_eq!(
        load(SharecoreStateBatch {
            first: 2,
            state: 2,
            ..batch
        }),
        InvalidRequest
    );
}

#[test]
fn threads_share_partitions_and_free_them_once() {
    let partitions: Vec<_> = (0..3).map(|_| create()).collect();
    let barrier = Barrier::new(8);
    let (partitions, barrier) = (&partitions, &barrier);
    let freed: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                scope.spawn(move || {
                    let member = format!("m{number}");
                    barrier.wait();
                    for turn in 0..200 {
                        let partition = partitions[turn % 3];
                        let mut out = [NOTHING; 16];
                        let (status, _) = acquire(partition, &member, 2, &mut out);
                        assert_eq!(status, SharecoreStatus::Ok);
                        let mut write = SharecoreWrite::default();
                        let status = unsafe {
                            let (name, length) = (member.as_ptr().cast(), member.len());
                            sharecore_release(partition, name, length, &raw mut write)
                        };
                        assert_eq!(status, SharecoreStatus::Ok);
                        if write.id != 0 {
                            assert_eq!(sharecore_commit(partition, write.id), SharecoreStatus::Ok);
                        }
                    }
                    barrier.wait();
                    let ended = partitions.iter().map(|p| sharecore_free(*p));
                    ended.filter(|s| *s == SharecoreStatus::Ok).count()
                })
            })
            .collect();
        let counts = threads.into_iter().map(|t| t.join().expect("no panic"));
        counts.sum()
    });
    assert_eq!(freed, 3);
}
