//! Watches a home that another broker leads, until that broker has ended or fallen silent.
//!
//! A wrong claim is safe: the leader is fenced, and no confirmed write is lost. Timing only decides how soon a claim is
//! made.

use sharecore_bucket::{
    Answer, Bucket, Checkpoint, Kind, Step, Walk, What, counted, list_all, names, object_claim,
};

/// The longest time between two looks; after a longer one, the silence is counted from zero.
const APART_MS: u64 = 3000;

/// The result of a look at the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Led {
    /// Nobody leads, or the leader has ended or is silent.
    Free,
    /// A node leads, in an epoch.
    By(i32, u32),
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
        }
    }

    /// Look at the journal. After an error the silence is counted from zero.
    pub fn look(&mut self, bucket: &mut dyn Bucket, now_ms: u64) -> Result<Led, String> {
        let found = self.try_look(bucket, now_ms);
        if found.is_err() {
            self.free_since_ms = None;
        }
        found
    }

    fn try_look(&mut self, bucket: &mut dyn Bucket, now_ms: u64) -> Result<Led, String> {
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => self.begin(bucket)?,
        };
        while let Some(bytes) = get(bucket, walk.name())? {
            // a damaged object is read again from the newest checkpoint by the next look
            match walk.take(&bytes)? {
                Step::Claim(_, claim) => {
                    self.leader = claim.node;
                    self.is_released = false;
                }
                Step::Mark(header) => self.is_released = header.kind == Kind::Release,
                Step::Frames(..) => self.is_released = false,
            }
            self.free_since_ms = None;
        }
        let led = Led::By(self.leader, walk.epoch);
        let is_own = walk.epoch == 0 || self.leader == self.node || self.is_released;
        if self.free_since_ms.is_none() || now_ms > self.looked_ms + APART_MS {
            self.free_since_ms = Some(now_ms);
        }
        self.looked_ms = now_ms;
        let since_ms = self.free_since_ms.unwrap_or(now_ms);
        if is_own || now_ms >= since_ms + self.silence_ms {
            // the place may be free because it was deleted
            if newest(bucket)?.is_none_or(|(place, _)| place <= walk.place) {
                return Ok(Led::Free);
            }
            self.free_since_ms = None;
            return Ok(led);
        }
        self.walk = Some(walk);
        Ok(led)
    }

    /// Return the walk from the newest checkpoint, and learn who leads there.
    fn begin(&mut self, bucket: &mut dyn Bucket) -> Result<Walk, String> {
        self.free_since_ms = None;
        self.is_released = false;
        let Some((place, epoch)) = newest(bucket)? else {
            return Ok(Walk::default());
        };
        let name = names::checkpoint(place, epoch);
        let bytes = get(bucket, name.clone())?;
        let checkpoint = bytes.and_then(|bytes| Checkpoint::decode(&bytes));
        let checkpoint = checkpoint.ok_or_else(|| format!("{name} cannot be read"))?;
        if let Some(claim) = checkpoint.claims.last() {
            let name = names::journal(*claim);
            let bytes = get(bucket, name.clone())?;
            let claim = bytes.as_deref().and_then(object_claim);
            self.leader = claim.ok_or_else(|| format!("{name} cannot be read"))?.node;
        }
        Ok(Walk::from(&checkpoint))
    }
}

fn get(bucket: &mut dyn Bucket, name: String) -> Result<Option<Vec<u8>>, String> {
    let what = format!("get {name}");
    match bucket.ask(What::Get { name, range: None }) {
        Answer::Bytes(bytes) => Ok(Some(bytes)),
        Answer::Unknown(why) => Err(format!("{what}: {why}")),
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
