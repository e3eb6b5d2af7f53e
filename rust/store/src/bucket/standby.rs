//! Watches a home that another broker leads, until that broker has ended or fallen silent.
//!
//! A wrong claim is safe: the leader is fenced, and no confirmed write is lost. Timing only decides how soon a claim is
//! made. Meanwhile it follows the catalog, so that a standby can refer clients to the leader.

use std::sync::Arc;

use sharecore_bucket::{
    Answer, Bucket, Checkpoint, HOME_WINDOW, Kind, Step, Walk, What, Writer, counted, list_all,
    mistakes::{Mistake, planted},
    names, object_claim,
};

use super::{
    copy::check_format,
    follower::{Changed, Follower},
    journal_cache::JournalCache,
    promote,
    read_ahead::ReadAhead,
    shared::BackupOptions,
};

/// The longest time between two looks; after a longer one, the silence is counted from zero.
const APART_MS: u64 = 3000;
/// How long after the end of the journal was reached a look stops at a heartbeat. An idle leader writes one every two
/// seconds, so the next looks read what follows.
const NEAR_END_MS: u64 = 3000;

/// The result of a look at the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Led {
    /// Nobody leads, or the leader has ended or is silent.
    Free,
    /// A node leads, in an epoch.
    By(i32, u32),
    /// A node copies its own store to the bucket, in an epoch, and has not ended. It writes no heartbeats, so its
    /// silence means nothing.
    Copied(i32, u32),
}

/// The place that a look found free: the only one that may be claimed. If another object takes it first, somebody leads,
/// and may lease records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreePlace {
    /// The place.
    pub place: u64,
    /// The epoch of an ended process of the same node, which led last: its requests may still arrive.
    pub own_epoch: Option<u32>,
}

impl BackupOptions {
    /// Why the home may not be claimed: somebody has written since a look, and may lease records.
    pub(super) fn taken(&self, walk: &Walk) -> Option<String> {
        let free = self.claims_at.filter(|free| free.place != walk.place)?;
        // this process, or an ended one of the same node
        let is_own = walk.writer == self.writer || free.own_epoch == Some(walk.epoch);
        let name = names::journal(free.place);
        let why = "was written after this broker found that nobody leads: restart it, to stand by";
        (!is_own).then(|| format!("{name} {why}"))
    }
}

/// Watches the journal of a home.
#[derive(Debug)]
pub struct Standby {
    node: i32,
    silence_ms: u64,
    walk: Option<Walk>,
    leader: i32,
    is_released: bool,
    /// Since when the next place is known to be free, and when it was last seen so.
    free_since_ms: Option<u64>,
    looked_ms: u64,
    /// When a look began that reached the end of the journal.
    at_end_ms: Option<u64>,
    /// The place that was free when nobody led.
    claims_at: Option<FreePlace>,
    /// A copy was restarted, and its first checkpoint is not uploaded.
    is_baseless: bool,
    read_ahead: ReadAhead,
    follower: Follower,
    segment: u64,
    /// Keeps what was read for a takeover.
    cache: Option<Arc<JournalCache>>,
}

impl Standby {
    /// Watch for a node. It leads at once if it was the last leader; any other leader must be silent for `silence_ms`.
    pub fn new(node: i32, silence_ms: u64) -> Self {
        Self {
            node,
            silence_ms,
            walk: None,
            leader: 0,
            is_released: false,
            free_since_ms: None,
            looked_ms: 0,
            at_end_ms: None,
            claims_at: None,
            read_ahead: ReadAhead::default(),
            is_baseless: false,
            follower: Follower::default(),
            segment: 0,
            cache: None,
        }
    }

    /// Keep the objects that are read from now on, and those since the newest checkpoint. They are for
    /// [`crate::prepare_home`].
    pub fn keep(&mut self, cache: Arc<JournalCache>) {
        self.cache = Some(cache);
    }

    /// Return the entries of the catalog that have changed since the last call.
    pub fn take_changed(&mut self) -> Vec<Changed> {
        self.follower.take_changed()
    }

    /// Return the place of the journal up to which it was read, and how long that place has been free.
    pub fn silence(&self, now_ms: u64) -> (u64, u64) {
        let place = self.walk.as_ref().map_or(0, |walk| walk.place);
        (
            place,
            self.free_since_ms
                .map_or(0, |since| now_ms.saturating_sub(since)),
        )
    }

    /// Return the segment of the newest frames that were read; 0 before any.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// After a look that returned [`Led::Free`]: what may be claimed.
    pub fn claims_at(&self) -> Option<FreePlace> {
        self.claims_at
    }

    /// Claim the copy of a broker that is lost, after a look has found it. `ms`: the time since 1970.
    pub fn promote(
        &mut self,
        bucket: &mut dyn Bucket,
        writer: Writer,
        ms: i64,
    ) -> Result<(), String> {
        let walk = self.walk.take().filter(|walk| walk.epoch > 0);
        let walk = walk.ok_or("the journal has not been read")?;
        if self.is_baseless {
            return Err("the copy was being restarted, and nothing after its restart can be restored. Restore it to a directory, and serve that with another prefix".into());
        }
        promote::claim(bucket, &walk, (self.node, writer, ms))
    }

    /// Look at the journal. After an error the silence is counted from zero.
    pub fn look(&mut self, bucket: &mut dyn Bucket, now: impl Fn() -> u64) -> Result<Led, String> {
        let found = self.try_look(bucket, now);
        if found.is_err() && !planted(Mistake::SilenceOverFailures) {
            self.free_since_ms = None;
        }
        found
    }

    fn try_look(&mut self, bucket: &mut dyn Bucket, now: impl Fn() -> u64) -> Result<Led, String> {
        let began_ms = now();
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => self.begin(bucket)?,
        };
        let near_end = self.at_end_ms.map(|at_ms| at_ms + NEAR_END_MS);
        let is_near_end = near_end.is_some_and(|until_ms| began_ms <= until_ms);
        let (mut ahead, mut is_beat) = (1, false);
        'walk: loop {
            let first = walk.place;
            let objects = match read(bucket, first, ahead) {
                Ok(objects) => objects,
                Err(why) => {
                    // the next look goes on from here
                    self.walk = Some(walk);
                    return Err(why);
                }
            };
            for (place, bytes) in (first..).zip(objects) {
                // a claim skips places
                if place == walk.place {
                    let Some(bytes) = bytes else {
                        self.at_end_ms = Some(began_ms);
                        break 'walk;
                    };
                    self.read_ahead.note(bytes.len());
                    // what is damaged is read anew from the newest checkpoint by the next look
                    is_beat = self.pass(&mut walk, &bytes)?;
                }
            }
            // a beat near the end says that nothing else was written lately: the next look is soon enough for what
            // follows. Any other beat may be one of thousands
            let is_last = is_near_end && ahead == 1 && is_beat;
            if is_last && self.leader != self.node && walk.window == HOME_WINDOW {
                break;
            }
            ahead = (ahead * 2).min(self.read_ahead.objects());
        }
        let is_own = walk.epoch == 0 || self.leader == self.node || self.is_released;
        let is_home = walk.window == HOME_WINDOW;
        let led = if is_home || is_own {
            Led::By(self.leader, walk.epoch)
        } else {
            Led::Copied(self.leader, walk.epoch)
        };
        let is_apart = began_ms > self.looked_ms + APART_MS;
        let is_unseen = is_apart && !planted(Mistake::SilenceOverFailures);
        if self.free_since_ms.is_none() || is_unseen {
            // the requests may have taken long: the place is known to be free from their end on
            self.free_since_ms = Some(now());
        }
        self.looked_ms = began_ms;
        let is_silent = self
            .free_since_ms
            .is_some_and(|since| began_ms >= since + self.silence_ms);
        if is_own || (is_home && is_silent) {
            // the place may be free because it was deleted
            match newest(bucket) {
                Ok(Some((place, _))) if place > walk.place => self.free_since_ms = None,
                Ok(_) => {
                    let led_last = walk.epoch > 0 && self.leader == self.node && !self.is_released;
                    self.claims_at = Some(FreePlace {
                        place: walk.place,
                        own_epoch: led_last.then_some(walk.epoch),
                    });
                    return Ok(Led::Free);
                }
                Err(why) => {
                    self.walk = Some(walk);
                    return Err(why);
                }
            }
            return Ok(led);
        }
        self.walk = Some(walk);
        Ok(led)
    }

    /// Pass the next object, and return whether it is a beat.
    fn pass(&mut self, walk: &mut Walk, bytes: &[u8]) -> Result<bool, String> {
        let name = walk.name();
        let place = walk.place;
        let (step, mut is_beat) = (walk.take(bytes)?, false);
        if let Some(cache) = &self.cache {
            cache.add(place, bytes);
        }
        match step {
            Step::Claim(_, claim) => {
                check_format(&claim, &name)?;
                self.leader = claim.node;
                self.is_released = false;
                self.is_baseless |= claim.is_base;
            }
            Step::Mark(header) => {
                self.is_released = header.kind == Kind::Release;
                is_beat = !self.is_released;
            }
            Step::Frames(header, frames) => {
                self.is_released = false;
                self.segment = header.frames.segment;
                let applied = self.follower.apply(frames);
                applied.ok_or_else(|| format!("{name} holds frames that cannot be read"))?;
            }
        }
        self.free_since_ms = None;
        Ok(is_beat)
    }

    /// Return the walk from the newest checkpoint, and learn who leads there.
    fn begin(&mut self, bucket: &mut dyn Bucket) -> Result<Walk, String> {
        self.free_since_ms = None;
        self.at_end_ms = None;
        self.is_released = false;
        self.is_baseless = false;
        if let Some(cache) = &self.cache {
            // what was read before may be of another journal
            cache.clear();
        }
        let Some((place, epoch)) = newest(bucket)? else {
            self.follower.begin(None);
            return Ok(Walk::default());
        };
        let name = names::checkpoint(place, epoch);
        let bytes = get(bucket, &name)?;
        let checkpoint = bytes.and_then(|bytes| Checkpoint::decode(&bytes));
        let checkpoint = checkpoint.ok_or_else(|| format!("{name} cannot be read"))?;
        if let Some(claim) = checkpoint.claims.last() {
            let name = names::journal(*claim);
            let bytes = get(bucket, &name)?;
            let claim = bytes.as_deref().and_then(object_claim);
            let claim = claim.ok_or_else(|| format!("{name} cannot be read"))?;
            check_format(&claim, &name)?;
            self.leader = claim.node;
        }
        let followed = self.follower.begin(Some(&checkpoint.store));
        followed.ok_or_else(|| format!("{name} holds a state that cannot be read"))?;
        Ok(Walk::from(&checkpoint))
    }
}

/// Read `count` objects of the journal from a place on.
fn read(bucket: &mut dyn Bucket, first: u64, count: u64) -> Result<Vec<Option<Vec<u8>>>, String> {
    let names = (first..first + count).map(names::journal);
    let whats = names.clone().map(|name| What::Get { name, range: None });
    let answers = bucket.ask_all(whats.collect()).into_iter();
    answers
        .zip(names)
        .map(|(answer, name)| found(answer, &name))
        .collect()
}

fn get(bucket: &mut dyn Bucket, name: &str) -> Result<Option<Vec<u8>>, String> {
    let answer = bucket.ask(What::Get {
        name: name.to_owned(),
        range: None,
    });
    found(answer, name)
}

fn found(answer: Answer, name: &str) -> Result<Option<Vec<u8>>, String> {
    match answer {
        Answer::Bytes(bytes) => Ok(Some(bytes)),
        Answer::Unknown(why) => Err(format!("get {name}: {why}")),
        _ => Ok(None),
    }
}

/// Return place and epoch of the newest checkpoint.
fn newest(bucket: &mut dyn Bucket) -> Result<Option<(u64, u32)>, String> {
    let page = |what| match bucket.ask(what) {
        Answer::Names(page) => Ok(page),
        Answer::Unknown(why) => Err(format!("list {}: {why}", names::CHECKPOINTS)),
        _ => Ok(Vec::new()),
    };
    let found = list_all(names::CHECKPOINTS, page)?;
    let places = found
        .iter()
        .filter_map(|(name, _)| names::parse_checkpoint(name));
    Ok(counted(places.collect()).pop())
}
