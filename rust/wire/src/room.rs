//! Memory for requests: limits by size class, and fair shares for senders.
//!
//! A request is admitted before it is read, by its claimed size; until then it waits in its client's socket. Small
//! requests never wait, those of up to a sixteenth of the limit do not wait for larger ones, and no owner can use up a
//! size class. Nothing here reads a clock or knows a connection: waiters are numbers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A request of up to this size is admitted at once, and counts only for its connection.
pub const SMALL_BYTES: usize = 16 << 10;

/// Size classes of requests.
const MEDIUM: usize = 0;
const LARGE: usize = 1;

/// An owner's memory, and its waiting requests.
#[derive(Debug, Default)]
struct Share {
    used: [u64; 2],
    parked: u64,
    waiting: [VecDeque<(u64, u64)>; 2],
}

impl Share {
    fn is_idle(&self) -> bool {
        self.used == [0, 0] && self.parked == 0 && self.waiting.iter().all(VecDeque::is_empty)
    }
}

/// A waiting request, the first of its owner in its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The sender.
    pub owner: Arc<str>,
    /// How many bytes it needs, with the later ones of the same owner and class.
    pub bytes: u64,
    /// Whether it waits for its owner's other requests, rather than for anyone's.
    pub for_own: bool,
}

/// Memory for requests: how much is used, and who waits.
#[derive(Debug, Default)]
pub struct Room {
    /// `None` if unlimited.
    bytes_max: Option<u64>,
    small: u64,
    used: [u64; 2],
    parked: u64,
    shares: HashMap<Arc<str>, Share>,
    /// Owners with waiting requests, by class; the first is next.
    turns: [VecDeque<Arc<str>>; 2],
}

impl Room {
    /// Creates room for this many bytes.
    pub fn new(bytes_max: Option<u64>) -> Self {
        Room {
            bytes_max,
            ..Room::default()
        }
    }

    /// The limit.
    pub fn bytes_max(&self) -> Option<u64> {
        self.bytes_max
    }

    /// Total bytes in use.
    pub fn used(&self) -> u64 {
        self.small + self.used[MEDIUM] + self.used[LARGE] + self.parked
    }

    /// Whether small requests use so much that each connection should have at most one in progress.
    pub fn is_crowded(&self) -> bool {
        self.bytes_max.is_some_and(|most| self.small > most / 4)
    }

    /// Whether a request is waiting.
    pub fn is_wanted(&self) -> bool {
        self.turns.iter().any(|turns| !turns.is_empty())
    }

    fn class(&self, size: u64) -> usize {
        match self.bytes_max {
            Some(most) if size > most / 16 => LARGE,
            _ => MEDIUM,
        }
    }

    /// Takes room for a request already in memory.
    pub fn take(&mut self, owner: &Arc<str>, size: usize) {
        if size <= SMALL_BYTES {
            self.small += size as u64;
        } else {
            self.count(owner, size as u64);
        }
    }

    fn count(&mut self, owner: &Arc<str>, size: u64) {
        let class = self.class(size);
        self.used[class] += size;
        let share = self.shares.entry(Arc::clone(owner)).or_default();
        share.used[class] += size;
    }

    /// Takes room for a request about to be read; returns false if it must wait until `admit` returns it.
    pub fn ask(&mut self, owner: &Arc<str>, who: u64, size: usize) -> bool {
        if size <= SMALL_BYTES {
            self.small += size as u64;
            return true;
        }
        let (size, class) = (size as u64, self.class(size as u64));
        let share = self.shares.get(owner);
        let is_first = share.is_none_or(|share| share.waiting[class].is_empty());
        if is_first && self.fits(owner, class, size) {
            self.count(owner, size);
            return true;
        }
        let share = self.shares.entry(Arc::clone(owner)).or_default();
        if share.waiting[class].is_empty() {
            self.turns[class].push_back(Arc::clone(owner));
        }
        share.waiting[class].push_back((who, size));
        false
    }

    /// Releases room.
    pub fn give(&mut self, owner: &Arc<str>, size: usize) {
        if size <= SMALL_BYTES {
            self.small -= size as u64;
            return;
        }
        let (size, class) = (size as u64, self.class(size as u64));
        self.used[class] -= size;
        if let Some(share) = self.shares.get_mut(owner) {
            share.used[class] -= size;
            if share.is_idle() {
                self.shares.remove(owner);
            }
        }
    }

    /// Parks a request that waits for something other than memory, so that others are read meanwhile; returns false if
    /// too much is parked already.
    pub fn park(&mut self, owner: &Arc<str>, size: usize) -> bool {
        if size <= SMALL_BYTES {
            return false;
        }
        let (size, class) = (size as u64, self.class(size as u64));
        let (most, all) = (self.bytes_max.unwrap_or(u64::MAX), self.parked);
        let Some(share) = self.shares.get_mut(owner) else {
            return false;
        };
        let fits = all + size <= most / 4 && (share.parked == 0 || share.parked + size <= most / 8);
        if fits {
            share.used[class] -= size;
            share.parked += size;
            self.used[class] -= size;
            self.parked += size;
        }
        fits
    }

    /// Releases the room of a parked request.
    pub fn give_parked(&mut self, owner: &Arc<str>, size: usize) {
        self.parked -= size as u64;
        if let Some(share) = self.shares.get_mut(owner) {
            share.parked -= size as u64;
            if share.is_idle() {
                self.shares.remove(owner);
            }
        }
    }

    /// Admits the next waiting request, taking its room; owners take turns.
    pub fn admit(&mut self) -> Option<u64> {
        for class in [MEDIUM, LARGE] {
            for _ in 0..self.turns[class].len() {
                let owner = self.turns[class].pop_front()?;
                let share = self.shares.get(&owner);
                let first = share.and_then(|share| share.waiting[class].front().copied());
                let Some((who, size)) = first else { continue };
                let fits = self.fits(&owner, class, size);
                self.turns[class].push_back(Arc::clone(&owner));
                if fits {
                    self.leave(&owner, class, 0);
                    self.count(&owner, size);
                    return Some(who);
                }
            }
        }
        None
    }

    /// Removes a waiting request whose client has gone.
    pub fn withdraw(&mut self, owner: &Arc<str>, who: u64) {
        for class in [MEDIUM, LARGE] {
            let share = self.shares.get(owner);
            let place = share.and_then(|share| {
                let mut waiting = share.waiting[class].iter();
                waiting.position(|(each, _)| *each == who)
            });
            if let Some(place) = place {
                self.leave(owner, class, place);
                return;
            }
        }
    }

    fn leave(&mut self, owner: &Arc<str>, class: usize, place: usize) {
        let Some(share) = self.shares.get_mut(owner) else {
            return;
        };
        share.waiting[class].remove(place);
        if share.waiting[class].is_empty() {
            self.turns[class].retain(|each| each != owner);
        }
        if share.is_idle() {
            self.shares.remove(owner);
        }
    }

    /// The first waiting request of each owner and class.
    pub fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for class in [MEDIUM, LARGE] {
            for owner in &self.turns[class] {
                let Some(share) = self.shares.get(owner) else {
                    continue;
                };
                let Some(&(_, first)) = share.waiting[class].front() else {
                    continue;
                };
                wanted.push(Wanted {
                    owner: Arc::clone(owner),
                    bytes: share.waiting[class].iter().map(|(_, size)| size).sum(),
                    for_own: !self.fits_share(owner, class, first),
                });
            }
        }
        wanted
    }

    fn fits(&self, owner: &Arc<str>, class: usize, size: u64) -> bool {
        self.fits_all(class, size) && self.fits_share(owner, class, size)
    }

    /// The most that requests of a class may use together.
    fn allowed(&self, most: u64, class: usize) -> u64 {
        if class == LARGE {
            return most / 2;
        }
        // the other classes leave room for a waiting large request
        let kept = most / 4;
        if self.turns[LARGE].is_empty() {
            kept.max((most / 4 * 3).saturating_sub(self.used[LARGE]))
        } else {
            kept
        }
    }

    /// A request alone in its class always fits, even one larger than the limit.
    fn fits_all(&self, class: usize, size: u64) -> bool {
        let Some(most) = self.bytes_max else {
            return true;
        };
        if class == LARGE && self.used[MEDIUM] + size > most / 4 * 3 && self.used[MEDIUM] > most / 4
        {
            return false;
        }
        self.used[class] == 0 || self.used[class] + size <= self.allowed(most, class)
    }

    /// An owner may use half of a class at most, or one request.
    fn fits_share(&self, owner: &Arc<str>, class: usize, size: u64) -> bool {
        let Some(most) = self.bytes_max else {
            return true;
        };
        let used = self.shares.get(owner).map_or(0, |share| share.used[class]);
        used == 0 || used + size <= self.allowed(most, class) / 2
    }
}
