//! Probes whether a bucket is reliable, before anything is stored in it.
//!
//! A bucket that answers single requests correctly may still let two of several simultaneous creates succeed. So the
//! probe races creates. A pass is evidence, not proof.

use std::mem;

use crate::call::{Answer, Body, Call, What};
use crate::names::{self, PROBE};

/// Rounds of simultaneous creates.
pub const ROUNDS: usize = 16;
/// Simultaneous creates of one name.
pub const CREATES: usize = 8;
const BODY_BYTES: usize = 1024;
const RANGE: std::ops::Range<u64> = 100..200;

/// The names of the permissions that requests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    list: &'static str,
    get: &'static str,
    /// For an object that does not exist.
    get_absent: &'static str,
    create: &'static str,
    delete: &'static str,
}

impl Rights {
    /// Amazon's.
    pub const S3: Self = Self {
        list: "s3:ListBucket",
        get: "s3:GetObject",
        get_absent: "s3:GetObject; without s3:ListBucket S3 answers 403 for absent objects",
        create: "s3:PutObject",
        delete: "s3:DeleteObject",
    };
    /// Google's.
    pub const GCS: Self = Self {
        list: "storage.objects.list",
        get: "storage.objects.get",
        get_absent: "storage.objects.get; without storage.objects.list Google answers 403 for absent objects",
        create: "storage.objects.create",
        delete: "storage.objects.delete",
    };
    /// Microsoft's, and the letters of a shared access signature.
    pub const AZURE: Self = Self {
        list: "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read (l in a SAS)",
        get: "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read (r in a SAS)",
        get_absent: "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read (r in a SAS)",
        create: "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write (cw in a SAS)",
        delete: "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/delete (d in a SAS)",
    };
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was checked, such as "create again".
    pub name: &'static str,
    /// The result.
    pub outcome: Outcome,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As required.
    Passed,
    /// The bucket answered wrongly and cannot be used. With the reason.
    Wrong(String),
    /// No definite answer. With the reason and the permission that the request needs.
    Unanswered(String),
}

/// The verdict of all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The bucket meets all requirements.
    Fit,
    /// It can be used, but nothing can be deleted: the copy only grows.
    FitButGrows(String),
    /// It must not be used.
    Unfit(String),
    /// Unknown, because some requests got no definite answer.
    Unknown(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    List,
    Absent,
    Create,
    Read,
    CreateAgain,
    ReadAgain,
    Range,
    Race(usize),
    RaceRead(usize),
    ListAgain,
    Delete,
    Gone,
    Ended,
}

/// The probe of one bucket: send `calls` and pass in each `answer`, until `is_ended`.
pub struct Probe {
    random: u128,
    rights: Rights,
    stage: Stage,
    /// The answers of the current stage, in the order of its calls.
    answers: Vec<Option<Answer>>,
    is_sent: bool,
    first_id: u64,
    checks: Vec<Check>,
    /// By number of the create, its answer in the round being read.
    race: Vec<Answer>,
}

impl Probe {
    /// Start a probe. Its object names come from `random`, so that two concurrent probes do not collide;
    /// `rights` are named if they are missing.
    pub fn new(random: u128, rights: Rights) -> Self {
        Self {
            random,
            rights,
            stage: Stage::List,
            answers: Vec::new(),
            is_sent: false,
            first_id: 0,
            checks: Vec::new(),
            race: Vec::new(),
        }
    }

    /// Whether all checks are done.
    pub fn is_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// The checks so far.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Return the calls to send now, all at once; empty while answers are pending, and at the end.
    pub fn calls(&mut self) -> Vec<Call> {
        if self.is_sent || self.is_ended() {
            return Vec::new();
        }
        self.is_sent = true;
        let whats = self.whats();
        self.first_id += self.answers.len() as u64;
        self.answers = vec![None; whats.len()];
        let ids = self.first_id..;
        ids.zip(whats).map(|(id, what)| Call { id, what }).collect()
    }

    /// Handle the answer to a call; an unexpected one is ignored.
    pub fn answer(&mut self, id: u64, answer: Answer) {
        let place = id.checked_sub(self.first_id).map(|place| place as usize);
        let Some(slot) = place.and_then(|place| self.answers.get_mut(place)) else {
            return;
        };
        *slot = Some(answer);
        if self.is_sent && self.answers.iter().all(Option::is_some) {
            let count = self.answers.len();
            let answers = mem::take(&mut self.answers);
            self.first_id += count as u64;
            self.is_sent = false;
            self.stage = self.judge(answers.into_iter().flatten().collect());
        }
    }

    /// The verdict so far; only a complete probe finds a bucket fit.
    pub fn verdict(&self) -> Verdict {
        let mut unknown = None;
        let mut grows = None;
        for Check { name, outcome } in &self.checks {
            match outcome {
                Outcome::Passed => {}
                Outcome::Wrong(why) => return Verdict::Unfit(why.clone()),
                Outcome::Unanswered(why) if *name == DELETE => grows = Some(why.clone()),
                Outcome::Unanswered(why) => unknown = unknown.or(Some(why.clone())),
            }
        }
        match (unknown, grows) {
            (Some(why), _) => Verdict::Unknown(why),
            _ if !self.is_ended() => Verdict::Unknown("the probe has not ended".into()),
            (None, Some(why)) => Verdict::FitButGrows(why),
            (None, None) => Verdict::Fit,
        }
    }

    fn whats(&self) -> Vec<What> {
        let name = self.name(0);
        let get = |name: String, range| vec![What::Get { name, range }];
        let create = |name: &str, body: Body| What::Create {
            name: name.to_owned(),
            body,
        };
        match self.stage {
            Stage::List | Stage::ListAgain => vec![What::List {
                prefix: format!("{PROBE}{:032x}", self.random),
                after: None,
            }],
            Stage::Create => vec![create(&name, body(0, 0))],
            Stage::CreateAgain => vec![create(&name, body(0, 1))],
            Stage::Absent | Stage::Read | Stage::ReadAgain | Stage::Gone => get(name, None),
            Stage::Range => get(name, Some(RANGE)),
            Stage::Race(round) => (0..CREATES)
                .map(|number| create(&self.name(round), body(round, number)))
                .collect(),
            Stage::RaceRead(round) => get(self.name(round), None),
            Stage::Delete => (0..=ROUNDS)
                .map(|round| What::Delete {
                    name: self.name(round),
                })
                .collect(),
            Stage::Ended => Vec::new(),
        }
    }

    fn name(&self, round: usize) -> String {
        format!("{}-{round:02}", names::probe(self.random))
    }

    /// Record the results of a stage, and return the next stage.
    fn judge(&mut self, answers: Vec<Answer>) -> Stage {
        if let Stage::Race(round) = self.stage {
            self.race = answers;
            return Stage::RaceRead(round);
        }
        let Some(first) = answers.first().cloned() else {
            return Stage::Ended;
        };
        match self.stage {
            Stage::List => {
                self.note(LIST, first, self.rights.list, |answer| match answer {
                    Answer::Names(_) => None,
                    _ => Some("a list does not return names".into()),
                });
                Stage::Absent
            }
            Stage::Absent => {
                self.note(
                    ABSENT,
                    first,
                    self.rights.get_absent,
                    |answer| match answer {
                        Answer::Absent => None,
                        _ => Some("a name that was never created exists".into()),
                    },
                );
                Stage::Create
            }
            Stage::Create => {
                let is_created = first == Answer::Done;
                self.note(CREATE, first, self.rights.create, |answer| match answer {
                    Answer::Done => None,
                    _ => Some("a name that was never created cannot be created".into()),
                });
                // without an object no further check is possible
                if is_created {
                    Stage::Read
                } else {
                    Stage::Delete
                }
            }
            Stage::Read => {
                let wrong =
                    "a created object is not readable at once: a broker would not see who leads";
                self.note_bytes(READ, first, &body(0, 0), wrong);
                Stage::Range
            }
            Stage::CreateAgain => {
                let wrong = "a second create of one name succeeds (its condition is ignored): two brokers could both lead";
                self.note(
                    CREATE_AGAIN,
                    first,
                    self.rights.create,
                    |answer| match answer {
                        Answer::Exists => None,
                        _ => Some(wrong.into()),
                    },
                );
                Stage::ReadAgain
            }
            Stage::ReadAgain => {
                let wrong = "a refused create has changed the object";
                self.note_bytes(KEPT, first, &body(0, 0), wrong);
                Stage::Delete
            }
            Stage::Range => {
                let (from, to) = (RANGE.start as usize, RANGE.end as usize);
                let wrong = "a range read returns other bytes than requested";
                self.note_bytes(RANGE_READ, first, &body(0, 0)[from..to], wrong);
                Stage::Race(1)
            }
            Stage::RaceRead(round) => {
                let outcome = judge_race(round, &self.race, &first, self.rights);
                let is_last = outcome != Outcome::Passed || round == ROUNDS;
                if is_last {
                    self.push(RACE, outcome);
                    return Stage::ListAgain;
                }
                Stage::Race(round + 1)
            }
            Stage::ListAgain => {
                let name = self.name(0);
                self.note(LIST_AGAIN, first, self.rights.list, |answer| match answer {
                    Answer::Names(names) if names.contains(&(name, BODY_BYTES as u64)) => None,
                    _ => Some("a created object is missing from a later list".into()),
                });
                // long after the first create: Google's storage refuses changes of one object within a second of each other
                Stage::CreateAgain
            }
            Stage::Delete => self.judge_deletes(answers),
            Stage::Gone => {
                self.note(GONE, first, self.rights.get, |answer| match answer {
                    Answer::Absent => None,
                    _ => Some("a deleted object is still readable".into()),
                });
                Stage::Ended
            }
            Stage::Race(_) | Stage::Ended => Stage::Ended,
        }
    }

    fn judge_deletes(&mut self, answers: Vec<Answer>) -> Stage {
        if !self.has_created() {
            return Stage::Ended;
        }
        let refused = answers.into_iter().find(|answer| *answer != Answer::Done);
        let next = if refused.is_none() {
            Stage::Gone
        } else {
            Stage::Ended
        };
        let answer = refused.unwrap_or(Answer::Done);
        self.note(DELETE, answer, self.rights.delete, |answer| match answer {
            Answer::Done => None,
            _ => Some("a delete does not return success".into()),
        });
        next
    }

    fn has_created(&self) -> bool {
        let created = |check: &Check| check.name == CREATE && check.outcome == Outcome::Passed;
        self.checks.iter().any(created)
    }

    /// After the end: a rule of the bucket deletes or archives objects.
    pub fn note_rule(&mut self, why: String) {
        self.push(RULES, Outcome::Wrong(why));
    }

    fn note_bytes(&mut self, name: &'static str, answer: Answer, expected: &[u8], wrong: &str) {
        self.note(name, answer, self.rights.get, |answer| match answer {
            Answer::Bytes(bytes) if bytes == expected => None,
            _ => Some(wrong.into()),
        });
    }

    fn note(
        &mut self,
        name: &'static str,
        answer: Answer,
        right: &str,
        wrong: impl FnOnce(Answer) -> Option<String>,
    ) {
        let outcome = match answer {
            Answer::Unknown(why) => Outcome::Unanswered(needs(&why, right)),
            answer => wrong(answer).map_or(Outcome::Passed, Outcome::Wrong),
        };
        self.push(name, outcome);
    }

    fn push(&mut self, name: &'static str, outcome: Outcome) {
        self.checks.push(Check { name, outcome });
    }
}

const LIST: &str = "list";
const ABSENT: &str = "read what is absent";
const CREATE: &str = "create";
const READ: &str = "read after create";
const CREATE_AGAIN: &str = "create again";
const KEPT: &str = "read after the second create";
const RANGE_READ: &str = "read a range";
const RACE: &str = "16 times 8 creates at once";
const LIST_AGAIN: &str = "list after create";
const DELETE: &str = "delete";
const GONE: &str = "read after delete";
const RULES: &str = "lifecycle rules";

fn needs(why: &str, right: &str) -> String {
    if why.contains(": 403") {
        format!("{why}. Allow {right}")
    } else {
        why.to_owned()
    }
}

/// The content of one create, different from any other.
fn body(round: usize, number: usize) -> Body {
    let mut bytes: Vec<u8> = (0..BODY_BYTES).map(|at| (at * 7 + round) as u8).collect();
    bytes[0] = number as u8;
    bytes.into()
}

/// Judge one round: exactly one create won, and its bytes are stored.
fn judge_race(round: usize, race: &[Answer], read: &Answer, rights: Rights) -> Outcome {
    let winners: Vec<usize> = (0..race.len())
        .filter(|&number| race[number] == Answer::Done)
        .collect();
    if winners.len() > 1 {
        return Outcome::Wrong(format!(
            "creates are not atomic: {} of {CREATES} creates of one name at once succeeded, so two brokers could both lead",
            winners.len()
        ));
    }
    let unknown = race
        .iter()
        .enumerate()
        .filter_map(|(number, answer)| match answer {
            Answer::Unknown(why) => Some((number, why)),
            _ => None,
        });
    let unknown: Vec<(usize, &String)> = unknown.collect();
    let bytes = match read {
        Answer::Bytes(bytes) => bytes,
        Answer::Absent if unknown.len() == race.len() => {
            return Outcome::Unanswered(needs(unknown[0].1, rights.create));
        }
        Answer::Unknown(why) => return Outcome::Unanswered(needs(why, rights.get)),
        _ => return Outcome::Wrong("objects created at once are missing afterwards".into()),
    };
    // a create without an answer may have won
    let may_have_won = |number: &usize| match winners.first() {
        Some(winner) => winner == number,
        None => unknown.iter().any(|(other, _)| other == number),
    };
    if (0..race.len()).any(|number| may_have_won(&number) && **body(round, number) == **bytes) {
        return Outcome::Passed;
    }
    Outcome::Wrong(
        "creates are not atomic: after several creates of one name at once the object has other content than the one that succeeded, so two brokers could both lead"
            .into(),
    )
}
