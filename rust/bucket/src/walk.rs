//! The walk: how the objects of a journal follow each other. Starting, following and restoring all read it this way.

use crate::{
    call::What,
    checkpoint::Checkpoint,
    names,
    object::{self, Claim, Header, Kind, Object, Writer},
};

/// Window of the epoch before the first claim, which has no writer.
const FIRST_WINDOW: u32 = 1;
/// Window of the leader of a home: it distinguishes a home from the copy of a store.
pub const HOME_WINDOW: u32 = 8;

/// A place of the journal, and the state before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Walk {
    /// The next place.
    pub place: u64,
    /// The epoch there; 0 before the first claim.
    pub epoch: u32,
    /// Its writer.
    pub writer: Writer,
    /// The most places its writer writes at once.
    pub window: u32,
    /// The number of the next frame.
    pub frame: u64,
    /// Header checksum of the last valid object; 0 for none.
    pub before: u32,
    /// The time of that object.
    pub ms: i64,
    /// Places of all claims.
    pub claims: Vec<u64>,
}

/// A valid object of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'a> {
    /// The start of an epoch.
    Claim(Header, Claim),
    /// Frames of the store.
    Frames(Header, &'a [u8]),
    /// A heartbeat or a release.
    Mark(Header),
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            place: 1,
            epoch: 0,
            writer: [0; 16],
            window: FIRST_WINDOW,
            frame: 1,
            before: 0,
            ms: 0,
            claims: Vec::new(),
        }
    }
}

impl From<&Checkpoint> for Walk {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            place: checkpoint.place,
            epoch: checkpoint.epoch,
            writer: checkpoint.writer,
            window: checkpoint.window,
            frame: checkpoint.frame,
            before: checkpoint.before,
            ms: checkpoint.ms,
            claims: checkpoint.claims.clone(),
        }
    }
}

impl Walk {
    /// Return the name of the next object.
    pub fn name(&self) -> String {
        names::journal(self.place)
    }

    /// Read the object at the next place. The error says what is wrong with it: the walk ends there.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, String> {
        let what = |error: &str| format!("{} {error}", self.name());
        let Object { header, crc, body } = object::read(bytes).map_err(what)?;
        if header.place != self.place {
            return Err(what("holds another place"));
        }
        if header.before != self.before {
            return Err(what("does not follow the object before it"));
        }
        let step = if header.kind == Kind::Claim {
            let claim =
                Claim::decode(body).ok_or_else(|| what("is a claim that cannot be read"))?;
            self.check_claim(&header, &claim).map_err(what)?;
            self.claims.push(header.place);
            self.window = claim.window;
            self.epoch = header.epoch;
            self.writer = header.writer;
            self.frame = header.frames.first;
            self.place = claim.resume;
            Step::Claim(header, claim)
        } else {
            let is_own = header.epoch == self.epoch && header.writer == self.writer;
            if !is_own {
                return Err(what("is of another writer than the newest claim"));
            }
            if header.frames.first != self.frame {
                return Err(what("does not go on with the next frame"));
            }
            self.frame += u64::from(header.frames.count);
            self.place += 1;
            match header.kind {
                Kind::Frames => Step::Frames(header, body),
                _ => Step::Mark(header),
            }
        };
        self.before = crc;
        self.ms = self.ms.max(header.ms);
        Ok(step)
    }

    fn check_claim(&self, header: &Header, claim: &Claim) -> Result<(), &'static str> {
        if header.epoch != self.epoch + 1 {
            return Err("is a claim of another epoch than the next");
        }
        let first = header.frames.first;
        if first != self.frame && !claim.is_base || first == 0 {
            return Err("is a claim that does not go on with the next frame");
        }
        if claim.resume <= header.place || claim.window == 0 {
            return Err("is a claim without a place to write");
        }
        Ok(())
    }

    /// Return the names of objects that could prove the absent object at this place lost.
    pub fn beyond(&self) -> impl Iterator<Item = String> {
        (self.place + 1..self.place + u64::from(self.window)).map(names::journal)
    }

    /// The list whose first page shows whether objects exist where no writer that knows this end can have written.
    pub fn list_beyond(&self) -> What {
        What::List {
            prefix: names::JOURNAL.into(),
            after: Some(names::journal(self.place + u64::from(self.window) - 1)),
        }
    }

    /// Return an error if the object at this place is absent although the list shows later objects: it is lost, or the
    /// checkpoint that covers it.
    pub fn proves_gap(&self, listed: &[(String, u64)]) -> Option<String> {
        let (name, _) = listed.first()?;
        Some(format!(
            "{} is lost, or the checkpoint that covers it: {name} lies behind it",
            self.name()
        ))
    }

    /// Return an error if the object at this place is absent although one of [`Walk::beyond`] proves that it was
    /// written. Without proof its writer may have had both in progress.
    pub fn proves_loss(&self, bytes: &[u8]) -> Option<String> {
        let later = object::read(bytes).ok()?.header;
        let is_own = later.epoch == self.epoch && later.writer == self.writer;
        (is_own && later.answered > self.place).then(|| {
            format!(
                "{} is lost: {} was written after it",
                self.name(),
                names::journal(later.place)
            )
        })
    }
}
