//! The leader's objects being written to the journal.
//!
//! Places are consecutive; at most a window of them is in progress. A place whose outcome is unknown is read before
//! anything else: it is then ours, another's, or free, and gets the same bytes again. Objects are acknowledged in place
//! order.

use std::collections::VecDeque;

use crate::{
    call::{Answer, Body, Call, What},
    mistakes::{Mistake, planted},
    names,
    object::{self, Frames, HEADER, Header, Kind, Writer},
    retry::pause_ms,
    walk::Walk,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Progress {
    /// To be created when due.
    Create(u64),
    /// Being created by the call with this ID.
    Creating(u64),
    /// To be read, to learn whose it is.
    Read(u64),
    Reading(u64),
    /// Known to be ours.
    Own,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sent {
    header: Header,
    body: Body,
    progress: Progress,
    tries: u32,
    since_ms: u64,
    /// When it was first sent: it did not exist before.
    begun_ms: Option<u64>,
}

/// An object known to be in the journal, as is everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shipped {
    /// Its header.
    pub header: Header,
    /// Its size.
    pub bytes: u64,
    /// When it was first sent: whoever saw the place free did so later, or lost the race for it.
    pub sent_ms: u64,
}

/// Another process has claimed the journal: objects in progress do not count, and nothing more may be written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fenced {
    /// The place that another process took.
    pub place: u64,
    /// Its epoch, if known.
    pub epoch: Option<u32>,
}

/// Writes the journal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shipper {
    epoch: u32,
    writer: Writer,
    window: u64,
    /// The next place.
    next: u64,
    /// All places below are known to be ours.
    answered: u64,
    before: u32,
    ms: i64,
    under_way: VecDeque<Sent>,
    fenced: Option<Fenced>,
    error: Option<String>,
}

impl Shipper {
    /// Start writing after a created claim, which `walk` has just passed.
    pub fn new(walk: &Walk) -> Self {
        Self {
            epoch: walk.epoch,
            writer: walk.writer,
            window: u64::from(walk.window),
            next: walk.place,
            answered: walk.place,
            before: walk.before,
            ms: walk.ms,
            under_way: VecDeque::new(),
            fenced: None,
            error: None,
        }
    }

    /// Return the writer's epoch.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Return the next place to write.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Return the place below which everything is known to be in the journal.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Return the header checksum of the last object cut.
    pub fn before(&self) -> u32 {
        self.before
    }

    /// Return the time of the last object cut.
    pub fn ms(&self) -> i64 {
        self.ms
    }

    /// Return who has claimed the journal, if anyone else has.
    pub fn fenced(&self) -> Option<&Fenced> {
        self.fenced.as_ref()
    }

    /// Return why the last attempt failed; None after a success.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Return the number of objects in progress.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Return since when the oldest object in progress has waited, as passed to `cut`.
    pub fn since_ms(&self) -> Option<u64> {
        self.under_way.front().map(|sent| sent.since_ms)
    }

    /// Whether the window has room for another object.
    pub fn has_room(&self) -> bool {
        let room = self.next < self.answered + self.window || planted(Mistake::WindowIgnored);
        room && self.fenced.is_none()
    }

    /// Queue an object: `object` has [`HEADER`] bytes of room followed by the body. `ms`: the time for humans;
    /// `since_ms`: since when its oldest frame has waited. Return its place.
    pub fn cut(
        &mut self,
        kind: Kind,
        frames: Frames,
        mut object: Vec<u8>,
        ms: i64,
        since_ms: u64,
    ) -> u64 {
        assert!(
            self.has_room(),
            "more objects than the window are under way"
        );
        assert!(object.len() >= HEADER, "no room for a header");
        self.ms = self.ms.max(ms);
        let header = Header {
            kind,
            epoch: self.epoch,
            writer: self.writer,
            place: self.next,
            answered: self.answered,
            ms: self.ms,
            frames,
            before: self.before,
        };
        self.before = header.write(&mut object);
        self.under_way.push_back(Sent {
            header,
            body: object.into(),
            progress: Progress::Create(0),
            tries: 0,
            since_ms,
            begun_ms: None,
        });
        self.next += 1;
        header.place
    }

    /// Append the calls that are due. `id`: the last call ID used.
    pub fn calls(&mut self, now_ms: u64, id: &mut u64, calls: &mut Vec<Call>) {
        if self.fenced.is_some() {
            return;
        }
        for sent in &mut self.under_way {
            let name = names::journal(sent.header.place);
            let what = match sent.progress {
                Progress::Create(due) if due <= now_ms => {
                    if sent.tries > 0 && planted(Mistake::OtherBytes) {
                        let mut other = sent.body.to_vec();
                        other.push(7);
                        sent.header.write(&mut other);
                        sent.body = other.into();
                    }
                    sent.begun_ms.get_or_insert(now_ms);
                    let body = sent.body.clone();
                    What::Create { name, body }
                }
                Progress::Read(due) if due <= now_ms => What::Get { name, range: None },
                _ => continue,
            };
            *id += 1;
            sent.progress = match what {
                What::Create { .. } => Progress::Creating(*id),
                _ => Progress::Reading(*id),
            };
            calls.push(Call { id: *id, what });
        }
    }

    /// Return when the next call is due; None if all wait for answers.
    pub fn due_ms(&self) -> Option<u64> {
        let dues = self
            .under_way
            .iter()
            .filter_map(|sent| match sent.progress {
                Progress::Create(due) | Progress::Read(due) => Some(due),
                _ => None,
            });
        dues.min().filter(|_| self.fenced.is_none())
    }

    /// Handle the answer to a call; return false if the call is not ours. Objects now known to be in the journal are
    /// appended to `shipped`, in place order.
    pub fn answer(
        &mut self,
        id: u64,
        answer: &Answer,
        now_ms: u64,
        shipped: &mut Vec<Shipped>,
    ) -> bool {
        let mut under_way = self.under_way.iter_mut();
        let Some(sent) = under_way.find(|sent| {
            matches!(sent.progress, Progress::Creating(call) | Progress::Reading(call) if call == id)
        }) else {
            return false;
        };
        let creating = matches!(sent.progress, Progress::Creating(_));
        let again = |sent: &mut Sent| {
            sent.tries += 1;
            now_ms + pause_ms(sent.tries, id)
        };
        match answer {
            Answer::Done if creating => sent.progress = Progress::Own,
            Answer::Exists if creating && planted(Mistake::ExistsIsOurs) => {
                sent.progress = Progress::Own;
            }
            Answer::Unknown(_) if creating && planted(Mistake::UnknownSkipped) => {
                sent.progress = Progress::Own;
            }
            Answer::Exists if creating => sent.progress = Progress::Read(now_ms),
            Answer::Bytes(bytes) if !creating => match object::read(bytes) {
                Ok(found) if found.header == sent.header && **bytes == **sent.body => {
                    sent.progress = Progress::Own;
                }
                found => {
                    self.fenced = Some(Fenced {
                        place: sent.header.place,
                        epoch: found.ok().map(|found| found.header.epoch),
                    });
                }
            },
            // the place is free: create with the same bytes again
            Answer::Absent if !creating => sent.progress = Progress::Create(again(sent)),
            other => {
                self.error = Some(match other {
                    Answer::Unknown(why) => why.clone(),
                    other => format!("an answer that does not fit the call: {other:?}"),
                });
                sent.progress = Progress::Read(again(sent));
            }
        }
        if planted(Mistake::AnsweredOutOfOrder)
            && let Some(at) = self
                .under_way
                .iter()
                .position(|sent| sent.progress == Progress::Own)
        {
            let sent = self.under_way.remove(at).expect("it was found there");
            shipped.push(Shipped::of(&sent));
        }
        let is_own = |sent: Option<&Sent>| sent.is_some_and(|sent| sent.progress == Progress::Own);
        while is_own(self.under_way.front()) {
            let sent = self.under_way.pop_front().expect("there is a first");
            self.answered = sent.header.place + 1;
            self.error = None;
            shipped.push(Shipped::of(&sent));
        }
        true
    }
}

impl Shipped {
    fn of(sent: &Sent) -> Self {
        Self {
            header: sent.header,
            bytes: sent.body.len() as u64,
            sent_ms: sent.begun_ms.unwrap_or(0),
        }
    }
}
