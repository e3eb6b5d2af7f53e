//! A bucket behind a network that loses, delays and repeats, and the time.

use std::time::Duration;

use sharecore_bucket::{Answer, Bucket, Call, MemoryBucket, What};
use sharecore_store::Store;

pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// A bucket behind a network, the time, and chance.
pub(crate) struct Network {
    pub(crate) bucket: MemoryBucket,
    /// Requests that may be carried out at any time, with the store that waits for the answer, by its writer.
    pub(crate) requests: Vec<(Call, Option<u8>)>,
    pub(crate) chance: Chance,
    pub(crate) now_ms: u64,
    pub(crate) faults: u64,
    /// In how many steps the process is killed.
    pub(crate) kill_in: Option<u64>,
}

impl Network {
    /// Let a store look at its bucket, and carry out some request of its.
    pub(crate) fn tick(&mut self, store: &Store, writer: u8) {
        store.step_bucket(self.now_ms, self.now_ms as i64);
        self.now_ms += self.chance.below(20);
        let line = store.bucket_line().expect("it has a bucket");
        while let Some(call) = line.next(Duration::ZERO) {
            self.requests.push((call, Some(writer)));
        }
        if let Some(left) = &mut self.kill_in {
            *left = left.saturating_sub(1);
            if *left == 0 {
                store.abandon();
                return;
            }
        }
        let own: Vec<usize> = (0..self.requests.len())
            .filter(|at| self.requests[*at].1.is_none_or(|it| it == writer))
            .collect();
        if own.is_empty() {
            return;
        }
        let at = own[self.chance.below(own.len() as u64) as usize];
        let (call, waits) = self.requests.swap_remove(at);
        if waits.is_none() {
            // one that nobody waits for may never be
            if self.chance.below(3) > 0 {
                self.bucket.ask(call.what);
            }
            return;
        }
        if self.chance.below(100) >= self.faults {
            let answer = self.bucket.ask(call.what);
            line.answer(call.id, answer);
            return;
        }
        match self.chance.below(3) {
            // refused
            0 => line.answer(call.id, Answer::Unknown("503".into())),
            // carried out later, or never
            1 => {
                line.answer(call.id, Answer::Unknown("reset".into()));
                self.requests.push((call, None));
            }
            // carried out now and later
            _ => {
                let answer = self.bucket.ask(call.what.clone());
                line.answer(call.id, answer);
                self.requests.push((call, None));
            }
        }
    }

    /// Nobody waits any more for what a store has asked.
    pub(crate) fn killed(&mut self, store: &Store, writer: u8) {
        let line = store.bucket_line().expect("it has a bucket");
        while let Some(call) = line.next(Duration::ZERO) {
            self.requests.push((call, Some(writer)));
        }
        for (_, waits) in &mut self.requests {
            *waits = waits.filter(|it| *it != writer);
        }
        // reads have no effect
        self.requests.retain(|(call, waits)| {
            waits.is_some() || matches!(call.what, What::Create { .. } | What::Delete { .. })
        });
    }
}
