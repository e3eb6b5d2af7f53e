//! The content of a file on a memory disk, and what a crash leaves of it.

#[derive(Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    /// The unsynced part was reported as synced.
    claimed: bool,
}

/// splitmix64
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }
}

fn put(content: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let end = at as usize + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    debug_assert!(content.len() >= end, "a file holds what was written");
    content[at as usize..end].copy_from_slice(bytes);
}

impl Content {
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self {
            now: bytes.clone(),
            durable: bytes,
            ..Self::default()
        }
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        put(&mut self.now, at, bytes);
        self.unsynced.push(Change::Write(at, bytes.to_vec()));
    }

    /// A sync that reports success without effect.
    pub(super) fn claim(&mut self) {
        self.claimed = !self.unsynced.is_empty();
    }

    pub(super) fn sync(&mut self) {
        self.claimed = false;
        for change in self.unsynced.drain(..) {
            match change {
                Change::Write(at, bytes) => put(&mut self.durable, at, &bytes),
                Change::Length(size) => self.durable.resize(size as usize, 0),
            }
        }
        debug_assert!(self.durable == self.now, "a sync leaves nothing behind");
    }

    /// Truncates or extends the file.
    pub(super) fn set_len(&mut self, size: u64) {
        self.now.resize(size as usize, 0);
        self.unsynced.push(Change::Length(size));
    }

    /// Keeps what a crash may leave of the file, as its durable content.
    ///
    /// Returns whether more was reported as durable.
    pub(super) fn crash(&mut self, random: &mut Random, rot_per_mille: u64) -> bool {
        let whole = random.below(self.unsynced.len() as u64 + 1) as usize;
        let stray = random.below(4) == 0;
        for (i, change) in std::mem::take(&mut self.unsynced).into_iter().enumerate() {
            match change {
                Change::Length(size) if i < whole => self.durable.resize(size as usize, 0),
                Change::Write(at, mut bytes) if i < whole => {
                    if rot_per_mille > 0 && random.below(1000) < rot_per_mille && !bytes.is_empty()
                    {
                        let bit = random.below(bytes.len() as u64 * 8) as usize;
                        bytes[bit / 8] ^= 1 << (bit % 8);
                    }
                    put(&mut self.durable, at, &bytes);
                }
                Change::Write(at, mut bytes) if i == whole || (stray && random.below(2) == 0) => {
                    let kept = random.below(bytes.len() as u64 + 1) as usize;
                    // a sector that was being written may contain anything
                    let torn = (kept + random.below(512) as usize).min(bytes.len());
                    let garbage = random.draw().to_le_bytes();
                    for (byte, other) in bytes[kept..torn].iter_mut().zip(garbage.iter().cycle()) {
                        *byte = *other;
                    }
                    // and a file may have grown before its bytes arrived
                    if random.below(2) == 0 {
                        bytes.truncate(torn);
                    } else {
                        bytes[torn..].fill(0);
                    }
                    put(&mut self.durable, at, &bytes);
                }
                Change::Length(_) | Change::Write(..) => {}
            }
        }
        debug_assert!(self.unsynced.is_empty(), "bytes survive a crash untracked");
        self.now.clone_from(&self.durable);
        std::mem::take(&mut self.claimed)
    }
}
