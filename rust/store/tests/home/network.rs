//! Time, and a bucket behind a network that loses, delays and repeats requests.

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

/// A bucket behind a network, with time and randomness.
pub(crate) struct Network {
    pub(crate) bucket: MemoryBucket,
    /// Requests that may be executed at any time, and the writer whose store waits for the answer.
    pub(crate) requests: Vec<(Call, Option<u8>)>,
    pub(crate) chance: Chance,
    pub(crate) now_ms: u64,
    pub(crate) faults: u64,
    /// The number of steps until the process is killed.
    /// Stores keep little on the disk.
    pub(crate) is_bounded: bool,
    pub(crate) kill_in: Option<u64>,
}

impl Network {
    /// Let a store poll its bucket, and execute some of its requests.
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
            // A request that is not awaited may be lost
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
            // Refused
            0 => line.answer(call.id, Answer::Unknown("503".into())),
            // Executed later, or never
            1 => {
                line.answer(call.id, Answer::Unknown("reset".into()));
                self.requests.push((call, None));
            }
            // Executed now and later
            _ => {
                let answer = self.bucket.ask(call.what.clone());
                line.answer(call.id, answer);
                self.requests.push((call, None));
            }
        }
    }

    /// Stop awaiting a store's requests.
    pub(crate) fn killed(&mut self, store: &Store, writer: u8) {
        let line = store.bucket_line().expect("it has a bucket");
        while let Some(call) = line.next(Duration::ZERO) {
            self.requests.push((call, Some(writer)));
        }
        for (_, waits) in &mut self.requests {
            *waits = waits.filter(|it| *it != writer);
        }
        // Reads have no effect
        self.requests.retain(|(call, waits)| {
            waits.is_some() || matches!(call.what, What::Create { .. } | What::Delete { .. })
        });
    }
}
