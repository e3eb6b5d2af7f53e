//! Summarizes a bucket from one list and a few small reads; safe while a broker writes it.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::{Answer, Bucket, What, list_all};
use crate::checkpoint::{Checkpoint, read_home};
use crate::names;
use crate::object::{HEADER, Header, Kind, object_claim, read_header};

/// How many of the last journal objects to search for the newest valid one: a fenced writer may have left some after
/// the claim that fenced it.
const LAST: usize = 64;
const ATTEMPTS: usize = 3;
/// How many places before an epoch's first object to search for its claim: objects of the former epoch may lie between.
const BEFORE: usize = 64;

/// Objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    /// How many.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The writer of the newest epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// Its node ID.
    pub node: i32,
    /// The most places that it writes at once.
    pub window: u32,
    /// It has ended, and said so.
    pub is_released: bool,
}

/// The summary of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The cluster of the home.
    pub cluster_id: String,
    /// The newest object of the journal: epoch of its writer, place, and ms since 1970; None for an empty journal.
    pub newest: Option<(u32, u64, i64)>,
    /// Who writes the newest epoch; None for an empty journal.
    pub leader: Option<Leader>,
    /// The oldest time that can be restored, in ms since 1970; None for an empty journal.
    pub oldest_ms: Option<i64>,
    /// Amounts by the first part of the names, such as `journal`.
    pub amounts: BTreeMap<String, Amount>,
    /// Journal objects created since `since_ms`.
    pub recent: u64,
}

impl Inspection {
    /// The total of all objects.
    pub fn total(&self) -> Amount {
        let add = |sum: Amount, each: &Amount| Amount {
            objects: sum.objects + each.objects,
            bytes: sum.bytes + each.bytes,
        };
        self.amounts.values().fold(Amount::default(), add)
    }
}

/// Summarize a bucket, and count the journal objects created since a time. The error is a sentence.
pub fn inspect(bucket: &mut impl Bucket, since_ms: i64) -> Result<Inspection, String> {
    let home =
        get(bucket, names::FORMAT, None)?.ok_or("not a copy: the object `format` is missing")?;
    let cluster_id = read_home(&home)
        .ok_or("the object `format` is from a newer release, or not sharecore's")?;
    let mut amounts: BTreeMap<String, Amount> = BTreeMap::new();
    let (mut places, mut checkpoints) = (Vec::new(), Vec::new());
    for (name, bytes) in list_all("", |list| page(bucket, &list))? {
        let kind = name.split('/').next().unwrap_or_default();
        let amount = amounts.entry(kind.to_owned()).or_default();
        amount.objects += 1;
        amount.bytes += bytes;
        places.extend(names::parse_journal(&name));
        checkpoints.extend(names::parse_checkpoint(&name));
    }
    let mut newest = None;
    let mut is_released = false;
    for place in places.iter().rev().take(LAST) {
        if let Some(header) = header(bucket, *place)? {
            let found = Some((header.epoch, *place, header.ms));
            if found > newest {
                newest = found;
                is_released = header.kind == Kind::Release;
            }
        }
    }
    let leader = match newest {
        None => None,
        Some((epoch, ..)) => leader(bucket, &places, epoch, is_released)?,
    };
    let mut recent = made_since(bucket, &places, since_ms)?;
    // those folded into checkpoints are deleted, but listed there
    for (place, epoch) in checkpoints.iter().rev().take(LAST) {
        let bytes = get(bucket, &names::checkpoint(*place, *epoch), None)?;
        let Some(checkpoint) = bytes.and_then(|bytes| Checkpoint::decode(&bytes)) else {
            continue;
        };
        let folded = checkpoint.folded.iter();
        let late = folded.filter(|folded| folded.ms >= since_ms);
        recent.extend(late.map(|folded| folded.place));
        if checkpoint.ms < since_ms {
            break;
        }
    }
    let oldest_ms = match checkpoints.first() {
        // everything is in the journal
        None => match places.first() {
            None => None,
            Some(first) => header(bucket, *first)?.map(|header| header.ms),
        },
        Some((place, epoch)) => get(bucket, &names::checkpoint(*place, *epoch), None)?
            .and_then(|bytes| Checkpoint::decode(&bytes))
            .map(|checkpoint| checkpoint.usable_ms),
    };
    Ok(Inspection {
        cluster_id,
        newest,
        leader,
        oldest_ms,
        recent: recent.len() as u64,
        amounts,
    })
}

/// Return who writes an epoch, by its claim; None if that is not found.
fn leader(
    bucket: &mut impl Bucket,
    places: &[u64],
    epoch: u32,
    is_released: bool,
) -> Result<Option<Leader>, String> {
    let (mut from, mut to) = (0, places.len());
    while from < to {
        let middle = from.midpoint(to);
        let is_older = header(bucket, places[middle])?.is_none_or(|header| header.epoch < epoch);
        if is_older {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    let until = places.len().min(from + 1);
    for place in places[..until].iter().rev().take(BEFORE) {
        let is_claim = |header: Header| header.kind == Kind::Claim && header.epoch == epoch;
        if !header(bucket, *place)?.is_some_and(is_claim) {
            continue;
        }
        let claim = get(bucket, &names::journal(*place), None)?;
        let claim = claim.as_deref().and_then(object_claim);
        return Ok(claim.map(|claim| Leader {
            node: claim.node,
            window: claim.window,
            is_released,
        }));
    }
    Ok(None)
}

/// Count the objects created since a time, by binary search: times ascend with places, except for kept claims.
fn made_since(
    bucket: &mut impl Bucket,
    places: &[u64],
    since_ms: i64,
) -> Result<BTreeSet<u64>, String> {
    let (mut from, mut to) = (0, places.len());
    while from < to {
        let middle = from.midpoint(to);
        // an object deleted meanwhile is an old one
        let is_old = header(bucket, places[middle])?.is_none_or(|header| header.ms < since_ms);
        if is_old {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    Ok(places[from..].iter().copied().collect())
}

fn header(bucket: &mut impl Bucket, place: u64) -> Result<Option<Header>, String> {
    let name = names::journal(place);
    let head = get(bucket, &name, Some(HEADER as u64))?;
    head.map(|head| read_header(&head).map_err(|what| format!("{name} {what}")))
        .transpose()
}

fn page(bucket: &mut impl Bucket, list: &What) -> Result<Vec<(String, u64)>, String> {
    match ask(bucket, list)? {
        Answer::Names(page) => Ok(page),
        _ => Err("a list was not answered with names".into()),
    }
}

fn get(
    bucket: &mut impl Bucket,
    name: &str,
    first: Option<u64>,
) -> Result<Option<Vec<u8>>, String> {
    let what = What::Get {
        name: name.to_owned(),
        range: first.map(|bytes| 0..bytes),
    };
    match ask(bucket, &what)? {
        Answer::Bytes(bytes) => Ok(Some(bytes)),
        Answer::Absent => Ok(None),
        other => Err(format!("{name} was answered with {other:?}")),
    }
}

fn ask(bucket: &mut impl Bucket, what: &What) -> Result<Answer, String> {
    let mut attempts = 0;
    loop {
        match bucket.ask(what.clone()) {
            Answer::Unknown(why) if attempts + 1 == ATTEMPTS => return Err(why),
            Answer::Unknown(_) => attempts += 1,
            answer => return Ok(answer),
        }
    }
}
