//! Who may keep requests in memory: bounds by size, and fair shares for those who send.
//!
//! A request is admitted before it is read, with the size that it claims; until then it waits in its client's socket. Small
//! requests never wait, those of up to a sixteenth of the bound do not wait for larger ones, and no owner can take all that
//! there is for requests of a size. Nothing here reads a clock or knows a connection: who waits is a number.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A request of so many bytes is admitted at once, and counts for its connection alone.
pub const SMALL_BYTES: usize = 16 << 10;

/// Classes of requests, by size.
const MEDIUM: usize = 0;
const LARGE: usize = 1;

/// What an owner has, and what of it waits.
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

/// A request that waits, the first of its owner in its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Who sends it.
    pub owner: Arc<str>,
    /// How many bytes it needs, with those behind it of the same owner and class.
    pub bytes: u64,
    /// Whether it waits for others of its owner; else for anybody's.
    pub for_own: bool,
}

/// Memory for requests: how much of it is taken, and who waits for more.
#[derive(Debug, Default)]
pub struct Room {
    /// `None` for no bound.
    bytes_max: Option<u64>,
    small: u64,
    used: [u64; 2],
    parked: u64,
    shares: HashMap<Arc<str>, Share>,
    /// Owners with requests that wait, by class; the first has its turn.
    turns: [VecDeque<Arc<str>>; 2],
}

impl Room {
    /// Room for so many bytes.
    pub fn new(bytes_max: Option<u64>) -> Self {
        Room {
            bytes_max,
            ..Room::default()
        }
    }

    /// The bound.
    pub fn bytes_max(&self) -> Option<u64> {
        self.bytes_max
    }

    /// All that is taken.
    pub fn used(&self) -> u64 {
        self.small + self.used[MEDIUM] + self.used[LARGE] + self.parked
    }

    /// Whether small requests take so much that a connection should have no more than one under way.
    pub fn is_crowded(&self) -> bool {
        self.bytes_max.is_some_and(|most| self.small > most / 4)
    }

    /// Whether a request waits.
    pub fn is_wanted(&self) -> bool {
        self.turns.iter().any(|turns| !turns.is_empty())
    }

    fn class(&self, size: u64) -> usize {
        match self.bytes_max {
            Some(most) if size > most / 16 => LARGE,
            _ => MEDIUM,
        }
    }

    /// Takes room for a request that is in memory already.
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

    /// Takes room for a request that is to be read; false where it has to wait, until `admit` names it.
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

    /// Gives room back.
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

    /// Sets a request aside that waits for something else than memory, so that others are read meanwhile; false where too
    /// much is set aside already.
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

    /// Gives back what was set aside.
    pub fn give_parked(&mut self, owner: &Arc<str>, size: usize) {
        self.parked -= size as u64;
        if let Some(share) = self.shares.get_mut(owner) {
            share.parked -= size as u64;
            if share.is_idle() {
                self.shares.remove(owner);
            }
        }
    }

    /// Who need not wait any longer, and has the room that was asked for; owners in turn.
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

    /// A request waits no longer, as its client has gone.
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

    /// The first request that waits of each owner and class.
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

    /// What requests of a class may take together.
    fn allowed(&self, most: u64, class: usize) -> u64 {
        if class == LARGE {
            return most / 2;
        }
        // where a large one waits, the others leave room for it
        let kept = most / 4;
        if self.turns[LARGE].is_empty() {
            kept.max((most / 4 * 3).saturating_sub(self.used[LARGE]))
        } else {
            kept
        }
    }

    /// One request alone in its class always fits: one that is larger than all that there is gets through, too.
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

    /// An owner has half of what there is for a class at most, or one request.
    fn fits_share(&self, owner: &Arc<str>, class: usize, size: u64) -> bool {
        let Some(most) = self.bytes_max else {
            return true;
        };
        let used = self.shares.get(owner).map_or(0, |share| share.used[class]);
        used == 0 || used + size <= self.allowed(most, class) / 2
    }
}
