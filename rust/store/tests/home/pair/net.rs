//! The bucket of two machines, and what is under way to it and back.

use std::{cell::Cell, sync::MutexGuard};

use sharecore_bucket::{Answer, Bucket, Call, MemoryBucket, What};

use crate::network::Chance;

/// After so long a transport gives up on an answer.
pub(super) const TIMEOUT_MS: u64 = 5000;

/// A clock that runs at a rate of its own.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) ahead_ms: u64,
    pub(super) percent: u64,
}

impl Clock {
    pub(super) fn read(self, now_ms: u64) -> u64 {
        self.ahead_ms + now_ms * self.percent / 100
    }
}

/// A request under way, or its answer.
pub(super) enum Packet {
    Request(Call),
    Answer(u64, Answer),
    /// The transport waits no longer for an answer.
    GivenUp(u64),
}

/// The bucket, and what is under way to it and back.
pub(super) struct Net {
    pub(super) now_ms: u64,
    pub(super) bucket: MemoryBucket,
    pub(super) chance: Chance,
    /// Nothing is lost, and nothing takes long.
    pub(super) is_calm: bool,
    /// When what arrives, of which machine, in which of its lives.
    pub(super) packets: Vec<(u64, usize, u64, Packet)>,
    /// Until when a machine does not reach the bucket.
    pub(super) cut_until_ms: [u64; 2],
    /// Until when answers do not reach a machine, though its requests reach the bucket.
    pub(super) held_until_ms: [u64; 2],
}

impl Net {
    fn delay_ms(&mut self) -> u64 {
        match self.chance.below(if self.is_calm { 90 } else { 100 }) {
            0..90 => 5 + self.chance.below(120),
            90..97 => 100 + self.chance.below(4000),
            _ => self.chance.below(60_000),
        }
    }

    fn is_cut(&self, machine: usize) -> bool {
        self.now_ms < self.cut_until_ms[machine]
    }

    pub(super) fn send(&mut self, machine: usize, life: u64, call: Call) {
        let now_ms = self.now_ms;
        let delay_ms = self.delay_ms();
        // whatever becomes of the request
        let given_up = Packet::GivenUp(call.id);
        self.packets
            .push((now_ms + TIMEOUT_MS, machine, life, given_up));
        if !self.is_cut(machine) || self.chance.below(3) == 0 {
            let request = Packet::Request(call.clone());
            self.packets
                .push((now_ms + delay_ms, machine, life, request));
            if !self.is_calm && self.chance.below(50) == 0 {
                let late_ms = now_ms + self.chance.below(30_000);
                self.packets
                    .push((late_ms, machine, life, Packet::Request(call)));
            }
        }
    }

    /// Carry out the requests that have arrived at the bucket, whoever has sent them.
    pub(super) fn carry_out(&mut self) {
        let now_ms = self.now_ms;
        let is_due = |packet: &(u64, usize, u64, Packet)| {
            packet.0 <= now_ms && matches!(packet.3, Packet::Request(_))
        };
        let (due, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.packets)
            .into_iter()
            .partition(is_due);
        self.packets = waiting;
        for (_, of, life, packet) in due {
            if let Packet::Request(call) = packet {
                let answer = self.bucket.ask(call.what);
                if !self.is_cut(of) || self.chance.below(3) == 0 {
                    let back_ms = now_ms + self.delay_ms();
                    self.packets
                        .push((back_ms, of, life, Packet::Answer(call.id, answer)));
                }
            }
        }
    }

    /// Return the answers that have arrived at a machine's process.
    pub(super) fn arrived(&mut self, machine: usize, life: u64) -> Vec<(u64, Answer)> {
        self.carry_out();
        let now_ms = self.now_ms;
        let is_held = now_ms < self.held_until_ms[machine];
        let (arrived, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.packets)
            .into_iter()
            .partition(|(due_ms, of, _, packet)| {
                let is_due = *due_ms <= now_ms && *of == machine;
                match packet {
                    Packet::Request(_) => false,
                    Packet::Answer(..) => is_due && !is_held,
                    Packet::GivenUp(_) => is_due,
                }
            });
        self.packets = waiting;
        let given_up = || Answer::Unknown("no answer in time".into());
        let answers = arrived.into_iter().filter(|(_, _, of, _)| *of == life);
        answers
            .filter_map(|(_, _, _, packet)| match packet {
                Packet::Answer(id, answer) => Some((id, answer)),
                Packet::GivenUp(id) => Some((id, given_up())),
                Packet::Request(_) => None,
            })
            .collect()
    }
}

/// The way of a standby to the bucket: it waits for each answer.
pub(super) struct Way<'a> {
    pub(super) net: MutexGuard<'a, Net>,
    pub(super) machine: usize,
    /// How long the requests of this look have taken.
    pub(super) spent_ms: &'a Cell<u64>,
}

impl Way<'_> {
    /// How long a request takes, and whether it is lost.
    fn way_ms(&mut self) -> (u64, bool) {
        let net = &mut self.net;
        let took_ms = net.delay_ms() + net.delay_ms();
        let is_lost = net.is_cut(self.machine)
            || net.now_ms < net.held_until_ms[self.machine]
            || took_ms > TIMEOUT_MS
            || (!net.is_calm && net.chance.below(50) == 0);
        (if is_lost { TIMEOUT_MS } else { took_ms }, is_lost)
    }
}

impl Bucket for Way<'_> {
    fn ask(&mut self, what: What) -> Answer {
        self.ask_all(vec![what]).remove(0)
    }

    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        let mut longest_ms = 0;
        let mut answers = Vec::new();
        for what in whats {
            let (took_ms, is_lost) = self.way_ms();
            longest_ms = longest_ms.max(took_ms);
            answers.push(if is_lost {
                Answer::Unknown("no answer in time".into())
            } else {
                // what it reads may be old when it arrives
                self.net.bucket.ask(what)
            });
        }
        self.spent_ms.set(self.spent_ms.get() + longest_ms);
        answers
    }
}
