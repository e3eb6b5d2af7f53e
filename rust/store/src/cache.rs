//! Bounds the bytes of recent batches kept in memory: the oldest are evicted first, whichever log they belong to.

use std::collections::{HashMap, VecDeque};

use crate::{
    LogId,
    log::{Log, Recent},
    state::IdHash,
};

/// Overhead of a cached batch.
const OVERHEAD: usize = 96;

#[derive(Debug)]
pub(crate) struct Cache {
    order: VecDeque<(LogId, i64)>,
    bytes: usize,
    limit: usize,
}

impl Cache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            order: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Caches a batch that just became durable, the newest of its log.
    pub(crate) fn keep(
        &mut self,
        logs: &mut HashMap<LogId, Log, IdHash>,
        id: LogId,
        recent: Recent,
    ) {
        self.bytes += recent.bytes.len() + OVERHEAD;
        self.order.push_back((id, recent.base));
        if let Some(log) = logs.get_mut(&id) {
            debug_assert!(
                log.recent.back().is_none_or(|last| last.last < recent.base),
                "the newest batch of its log"
            );
            log.recent.push_back(recent);
        }
        while self.bytes > self.limit {
            let Some((id, base)) = self.order.pop_front() else {
                break;
            };
            let Some(log) = logs.get_mut(&id) else {
                continue;
            };
            if log.recent.front().is_some_and(|r| r.base == base)
                && let Some(recent) = log.recent.pop_front()
            {
                self.bytes -= recent.bytes.len() + OVERHEAD;
                give_back(&mut log.recent);
            }
        }
        debug_assert!(
            self.bytes <= self.limit || self.order.is_empty(),
            "more is kept than allowed"
        );
        debug_assert!(
            self.bytes >= logs.get(&id).map_or(0, |log| log.recent.len()) * OVERHEAD,
            "batches are kept that are not counted"
        );
    }

    /// A log's batches before an offset have been replaced on disk.
    pub(crate) fn forget_before(&mut self, id: LogId, log: &mut Log, offset: i64) {
        let count = log.recent.partition_point(|r| r.last < offset);
        if count == 0 {
            return;
        }
        let gone = log.recent.drain(..count);
        self.bytes -= gone.map(|r| r.bytes.len() + OVERHEAD).sum::<usize>();
        give_back(&mut log.recent);
        self.order
            .retain(|(log, base)| *log != id || *base >= offset);
        debug_assert!(
            log.recent.front().is_none_or(|first| first.last >= offset),
            "a replaced batch is left"
        );
    }

    /// Drops all cached batches of a deleted log.
    pub(crate) fn forget(&mut self, log: &Log) {
        self.bytes -= log
            .recent
            .iter()
            .map(|r| r.bytes.len() + OVERHEAD)
            .sum::<usize>();
    }
}

/// Releases memory that a log's batches no longer need: it was reserved when most cached batches were this log's.
fn give_back(recent: &mut VecDeque<Recent>) {
    const LEAST: usize = 64;
    if recent.capacity() > LEAST.max(4 * recent.len()) {
        recent.shrink_to(LEAST.max(2 * recent.len()));
    }
}
