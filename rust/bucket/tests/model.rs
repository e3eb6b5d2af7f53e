//! All interleavings of two writers and a sweeper on one journal, with requests that are lost, late or executed twice.
//!
//! The search looks for an acknowledged object that is not in the journal, a journal that breaks the rules of the walk, and a
//! walk that does not extend the previous one. Each planted mistake must be found.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use sharecore_bucket::{
    Answer, Body, Call, Claimant, Claimed, Claiming, Frames, HEADER, Kind, Shipper, Walk, What,
    may_be_swept,
    mistakes::{Mistake, plant},
    names, read,
};

const WINDOW: u32 = 2;
const WRITERS: usize = 2;

/// Limits of the search.
#[derive(Clone, Copy)]
struct Bounds {
    /// Objects that each writer creates, over all its lives.
    cuts: [u8; WRITERS],
    /// Requests whose answer is lost; they may be executed at any later time, or never.
    lost: u8,
    /// Requests that are executed a second time, at any time.
    doubled: u8,
    /// Times that each writer restarts: it walks and claims.
    starts: [u8; WRITERS],
    /// True if objects that a checkpoint covers are deleted.
    sweeps: bool,
    /// True if a writer claims after the assumed end without reading it.
    unread: bool,
}

#[derive(Clone, Hash)]
enum Doing {
    Nothing,
    Walking(Walk),
    Claiming(Claiming),
    Leading(Shipper),
}

#[derive(Clone, Hash)]
struct Process {
    doing: Doing,
    /// The pending call of its walk or its claim.
    call: Option<u64>,
    /// The number of its next frame.
    frame: u64,
    starts: u8,
    cuts: u8,
}

#[derive(Clone, Hash)]
struct World {
    bucket: BTreeMap<String, Body>,
    processes: [Process; WRITERS],
    /// Requests whose answer is awaited.
    requests: Vec<(usize, Call)>,
    /// Requests whose answer is no longer awaited.
    late: Vec<What>,
    id: u64,
    lost: u8,
    doubled: u8,
    /// Objects found by walks, and the state before each place.
    journal: BTreeMap<u64, u32>,
    walks: BTreeMap<u64, Walk>,
    end: Walk,
    /// The state stored in a checkpoint.
    checkpoint: Option<Walk>,
}

impl World {
    fn new() -> Self {
        let process = Process {
            doing: Doing::Nothing,
            call: None,
            frame: 0,
            starts: 0,
            cuts: 0,
        };
        Self {
            bucket: BTreeMap::new(),
            processes: [process.clone(), process],
            requests: Vec::new(),
            late: Vec::new(),
            id: 0,
            lost: 0,
            doubled: 0,
            journal: BTreeMap::new(),
            walks: BTreeMap::new(),
            end: Walk::default(),
            checkpoint: None,
        }
    }

    fn ask(&mut self, what: &What) -> Answer {
        match what {
            What::Create { name, body } => {
                if self.bucket.contains_key(name) {
                    return Answer::Exists;
                }
                self.bucket.insert(name.clone(), body.clone());
                Answer::Done
            }
            What::Get { name, .. } => match self.bucket.get(name) {
                Some(body) => Answer::Bytes(body.to_vec()),
                None => Answer::Absent,
            },
            What::List { prefix, after } => {
                let names = self.bucket.keys().filter(|name| name.starts_with(prefix));
                let names = names.filter(|name| Some(*name) > after.as_ref());
                Answer::Names(names.map(|name| (name.clone(), 0)).collect())
            }
            What::Delete { name } => {
                self.bucket.remove(name);
                Answer::Done
            }
            What::Put { .. } => panic!("nothing is overwritten"),
        }
    }

    /// Pass an answer to the writer that waits for it.
    fn answer(
        &mut self,
        who: usize,
        id: u64,
        answer: Answer,
        bounds: Bounds,
    ) -> Result<(), String> {
        let process = &mut self.processes[who];
        if process.call == Some(id) {
            process.call = None;
        }
        let mut answered = Vec::new();
        match &mut process.doing {
            Doing::Nothing => {}
            Doing::Leading(shipper) => {
                shipper.answer(id, &answer, 0, &mut answered);
                if shipper.fenced().is_some() {
                    process.doing = Doing::Nothing;
                }
            }
            Doing::Walking(walk) => match answer {
                Answer::Bytes(bytes) => {
                    let passed = walk.take(&bytes).map(|_| ());
                    if passed.is_err() {
                        let fresh = self.checkpoint.clone().unwrap_or_default();
                        if fresh.place <= walk.place {
                            return Err(format!("{} breaks the rules", walk.name()));
                        }
                        *walk = fresh;
                    }
                }
                Answer::Absent => {
                    let mut walk = walk.clone();
                    if bounds.unread && who == 1 {
                        walk.place += 1;
                    }
                    process.doing = Doing::Claiming(Claiming::new(walk, &claimant(who, process)));
                }
                _ => {}
            },
            Doing::Claiming(claiming) => match claiming.answer(&answer) {
                Claimed::Unknown => {}
                Claimed::Taken(walk) => process.doing = Doing::Walking(walk),
                Claimed::Stale => {
                    let walk = self.checkpoint.clone().unwrap_or_default();
                    process.doing = Doing::Walking(walk);
                }
                Claimed::Ours(walk) => {
                    process.frame = walk.frame;
                    process.doing = Doing::Leading(Shipper::new(&walk));
                }
            },
        }
        self.look()?;
        for it in answered {
            let place = it.header.place;
            let body = self.journal.get(&place);
            let expected = it.header.write(&mut object(who, it.header.frames.first));
            if body != Some(&expected) {
                return Err(format!(
                    "place {place} was answered and is not in the journal"
                ));
            }
        }
        Ok(())
    }

    /// Walk on from the end of the last walk, and from the newest checkpoint to that end.
    fn look(&mut self) -> Result<(), String> {
        loop {
            let place = self.end.place;
            let Some(body) = self.bucket.get(&names::journal(place)).cloned() else {
                break;
            };
            self.walks.insert(place, self.end.clone());
            let before = self.end.place;
            self.end.take(&body)?;
            let crc = read(&body).map_err(String::from)?.crc;
            self.journal.insert(before, crc);
        }
        let mut walk = self.checkpoint.clone().unwrap_or_default();
        while walk.place != self.end.place {
            let Some(body) = self.bucket.get(&walk.name()) else {
                return Err(format!("{} was in the journal and is gone", walk.name()));
            };
            let before = walk.place;
            walk.take(body)?;
            if self.journal.get(&before) != Some(&walk.before) {
                return Err(format!("place {before} has changed"));
            }
        }
        Ok(())
    }

    /// Make all calls that are due in all processes.
    fn settle(&mut self) {
        // Low numbers, so that more states are equal
        self.id = self
            .requests
            .iter()
            .map(|(_, call)| call.id)
            .max()
            .unwrap_or(0);
        for who in 0..WRITERS {
            let process = &mut self.processes[who];
            let mut calls = Vec::new();
            let what = match &mut process.doing {
                Doing::Nothing => None,
                Doing::Walking(walk) => Some(What::Get {
                    name: walk.name(),
                    range: None,
                }),
                Doing::Claiming(claiming) => Some(claiming.call()),
                Doing::Leading(shipper) => {
                    shipper.calls(u64::MAX, &mut self.id, &mut calls);
                    None
                }
            };
            if let Some(what) = what.filter(|_| process.call.is_none()) {
                self.id += 1;
                process.call = Some(self.id);
                calls.push(Call { id: self.id, what });
            }
            self.requests
                .extend(calls.into_iter().map(|call| (who, call)));
        }
    }

    /// All possible next states.
    fn next(&self, bounds: Bounds) -> Vec<Result<World, String>> {
        let mut next = Vec::new();
        let mut push = |act: &mut dyn FnMut(&mut World) -> Result<(), String>| {
            let mut world = self.clone();
            next.push(act(&mut world).map(|()| {
                world.settle();
                world
            }));
        };
        for at in 0..self.requests.len() {
            push(&mut |world| {
                let (who, call) = world.requests.remove(at);
                let answer = world.ask(&call.what);
                world.answer(who, call.id, answer, bounds)
            });
            let is_create = matches!(self.requests[at].1.what, What::Create { .. });
            if is_create && self.lost < bounds.lost {
                push(&mut |world| {
                    world.lost += 1;
                    let (who, call) = world.requests.remove(at);
                    world.late.push(call.what);
                    world.answer(who, call.id, Answer::Unknown("lost".into()), bounds)
                });
            }
            if is_create && self.doubled < bounds.doubled {
                push(&mut |world| {
                    world.doubled += 1;
                    let (who, call) = world.requests.remove(at);
                    let answer = world.ask(&call.what);
                    world.late.push(call.what);
                    world.answer(who, call.id, answer, bounds)
                });
            }
        }
        for at in 0..self.late.len() {
            push(&mut |world| {
                let what = world.late.remove(at);
                world.ask(&what);
                world.look()
            });
        }
        if let Some(checkpoint) = &self.checkpoint {
            for place in self
                .bucket
                .keys()
                .filter_map(|name| names::parse_journal(name))
            {
                if may_be_swept(place, checkpoint.place, &checkpoint.claims) {
                    push(&mut |world| {
                        world.bucket.remove(&names::journal(place));
                        world.look()
                    });
                }
            }
        }
        for who in 0..WRITERS {
            let process = &self.processes[who];
            if let Doing::Leading(shipper) = &process.doing {
                if process.cuts < bounds.cuts[who] && shipper.has_room() {
                    push(&mut |world| {
                        world.cut(who);
                        Ok(())
                    });
                }
                let walk = self.walks.get(&shipper.answered());
                if let Some(walk) = walk.filter(|_| bounds.sweeps && self.checkpoint.is_none()) {
                    push(&mut |world| {
                        world.checkpoint = Some(walk.clone());
                        let name = names::checkpoint(walk.place, walk.epoch);
                        world.bucket.insert(name, Vec::new().into());
                        world.look()
                    });
                }
            } else if matches!(process.doing, Doing::Nothing) && process.starts < bounds.starts[who]
            {
                push(&mut |world| {
                    let walk = world.checkpoint.clone().unwrap_or_default();
                    let process = &mut world.processes[who];
                    process.starts += 1;
                    process.doing = Doing::Walking(walk);
                    Ok(())
                });
            }
        }
        next
    }

    fn cut(&mut self, who: usize) {
        let process = &mut self.processes[who];
        let Doing::Leading(shipper) = &mut process.doing else {
            panic!("only who leads writes");
        };
        let frames = Frames {
            first: process.frame,
            count: 1,
            ..Frames::default()
        };
        shipper.cut(Kind::Frames, frames, object(who, process.frame), 0, 0);
        process.frame += 1;
        process.cuts += 1;
    }
}

/// An object of one writer, with room for its header.
fn object(who: usize, frame: u64) -> Vec<u8> {
    let mut object = vec![0; HEADER];
    object.extend_from_slice(&[who as u8, frame as u8]);
    object
}

fn claimant(who: usize, process: &Process) -> Claimant {
    let mut writer = [0; 16];
    (writer[0], writer[1]) = (who as u8 + 1, process.starts);
    let frame = match &process.doing {
        Doing::Walking(walk) => walk.frame,
        _ => 1,
    };
    Claimant {
        writer,
        node: who as i32,
        window: WINDOW,
        next: Frames {
            segment: 1,
            at: 0,
            first: frame,
            count: 0,
        },
        is_base: false,
        format: 1,
        about: Vec::new(),
        ms: 0,
    }
}

/// Visit every state; return their number, or the first fault.
fn search(bounds: Bounds) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut open = vec![World::new()];
    while let Some(world) = open.pop() {
        for next in world.next(bounds) {
            let next = next?;
            let mut hasher = DefaultHasher::new();
            next.hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                open.push(next);
            }
        }
    }
    Ok(seen.len())
}

const NARROW: Bounds = Bounds {
    cuts: [2, 1],
    lost: 1,
    doubled: 0,
    starts: [1, 1],
    sweeps: false,
    unread: false,
};

#[test]
fn no_answer_is_lost_and_no_journal_breaks() {
    for bounds in [
        NARROW,
        Bounds {
            lost: 0,
            doubled: 1,
            ..NARROW
        },
        Bounds {
            lost: 2,
            cuts: [1, 1],
            starts: [2, 1],
            ..NARROW
        },
        Bounds {
            sweeps: true,
            ..NARROW
        },
    ] {
        let states = search(bounds).expect("no fault");
        assert!(states > 100, "the search looked at {states} states alone");
    }
}

#[test]
fn each_planted_mistake_is_found() {
    for (mistake, bounds) in [
        (
            Mistake::ClaimsSwept,
            Bounds {
                sweeps: true,
                ..NARROW
            },
        ),
        (
            Mistake::ClaimUnconfirmed,
            Bounds {
                sweeps: true,
                ..NARROW
            },
        ),
        (Mistake::AnsweredOutOfOrder, NARROW),
        (Mistake::ExistsIsOurs, NARROW),
        (Mistake::UnknownSkipped, NARROW),
        (Mistake::OtherBytes, NARROW),
        (Mistake::ResumeAtOnce, NARROW),
        (
            Mistake::WindowIgnored,
            Bounds {
                cuts: [3, 1],
                ..NARROW
            },
        ),
    ] {
        plant(Some(mistake));
        let found = search(bounds);
        plant(None);
        assert!(found.is_err(), "{mistake:?} was not found");
    }
}

/// A claim after a place that its writer has not read.
#[test]
fn a_claim_that_is_made_without_reading_to_the_end_is_found() {
    let found = search(Bounds {
        unread: true,
        ..NARROW
    });
    assert!(found.is_err(), "{found:?}");
}
