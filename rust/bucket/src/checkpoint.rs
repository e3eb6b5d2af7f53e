//! Checkpoints, manifests of sealed segments, and the object that identifies the home.
//!
//! A checkpoint holds the state before a place of the journal, so that the journal is read from there.

use std::collections::BTreeSet;

use crate::{
    fields::{Fields, Out},
    mistakes::{Mistake, planted},
    object::{Header, Writer},
};

const MAGIC: [u8; 8] = *b"SCbck-1\n";
const MANIFEST_MAGIC: [u8; 8] = *b"SCman-1\n";

/// A sealed segment in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// Its number in the store.
    pub id: u64,
    /// The epoch of its uploader.
    pub epoch: u32,
    /// Rewritten by compaction: its batches are not in frames.
    pub is_compact: bool,
}

impl Segment {
    fn encode(self, out: &mut Out) {
        out.u64(self.id);
        out.u32(self.epoch);
        out.u32(u32::from(self.is_compact));
    }

    fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            id: fields.u64()?,
            epoch: fields.u32()?,
            is_compact: match fields.u32()? {
                0 => false,
                1 => true,
                _ => return None,
            },
        })
    }
}

/// A journal object before a checkpoint. It may be deleted: its frames are in sealed segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Folded {
    /// Its place.
    pub place: u64,
    /// The number after its last frame.
    pub frame: u64,
    /// When it was made, in milliseconds since 1970.
    pub ms: i64,
}

impl Folded {
    /// Return the one with this header.
    pub fn of(header: &Header) -> Self {
        Self {
            place: header.place,
            frame: header.frames.end(),
            ms: header.ms,
        }
    }
}

/// The state before a place of the journal. Its name contains the place and the epoch of its writer, which may be later
/// than that of the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The place.
    pub place: u64,
    /// The epoch there, its writer, and its window.
    pub epoch: u32,
    /// See `epoch`.
    pub writer: Writer,
    /// See `epoch`.
    pub window: u32,
    /// The number of the next frame.
    pub frame: u64,
    /// Header checksum of the last valid object before the place.
    pub before: u32,
    /// When the newest object before it was made, in milliseconds since 1970.
    pub ms: i64,
    /// The first place whose state can be restored with it, and the time of that object. A segment's index is written
    /// some time after its last frame, and lists only what was still needed by then: earlier states are restored with
    /// the previous checkpoint.
    pub usable_from: u64,
    /// See `usable_from`.
    pub usable_ms: i64,
    /// Places of all claims so far; claims are never deleted.
    pub claims: Vec<u64>,
    /// The sealed segments of the state.
    pub segments: Vec<Segment>,
    /// Further sealed segments, needed to restore states between the previous checkpoint and this one.
    pub between: Vec<Segment>,
    /// Journal objects since the previous checkpoint.
    pub folded: Vec<Folded>,
    /// The store's own checkpoint.
    pub store: Vec<u8>,
}

impl Checkpoint {
    /// Encode the checkpoint.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(MAGIC.to_vec());
        out.u64(self.place);
        out.u32(self.epoch);
        out.0.extend_from_slice(&self.writer);
        out.u32(self.window);
        out.u64(self.frame);
        out.u32(self.before);
        out.u64(self.ms.cast_unsigned());
        out.u64(self.usable_from);
        out.u64(self.usable_ms.cast_unsigned());
        out.count(self.claims.len());
        self.claims.iter().for_each(|place| out.u64(*place));
        for list in [&self.segments, &self.between] {
            out.count(list.len());
            for segment in list {
                segment.encode(&mut out);
            }
        }
        out.count(self.folded.len());
        for folded in &self.folded {
            out.u64(folded.place);
            out.u64(folded.frame);
            out.u64(folded.ms.cast_unsigned());
        }
        out.sized(&self.store);
        out.finish()
    }

    /// Decode a checkpoint; None if it does not match its checksum.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::checked(bytes, MAGIC)?;
        let checkpoint = Self {
            place: fields.u64()?,
            epoch: fields.u32()?,
            writer: fields.array()?,
            window: fields.u32()?,
            frame: fields.u64()?,
            before: fields.u32()?,
            ms: fields.u64()?.cast_signed(),
            usable_from: fields.u64()?,
            usable_ms: fields.u64()?.cast_signed(),
            claims: fields.list(Fields::u64)?,
            segments: fields.list(Segment::decode)?,
            between: fields.list(Segment::decode)?,
            folded: fields.list(|fields| {
                Some(Folded {
                    place: fields.u64()?,
                    frame: fields.u64()?,
                    ms: fields.u64()?.cast_signed(),
                })
            })?,
            store: fields.sized()?.to_vec(),
        };
        fields.end(checkpoint)
    }

    /// Return all segments it refers to.
    pub fn named(&self) -> impl Iterator<Item = Segment> + '_ {
        self.segments.iter().chain(&self.between).copied()
    }
}

/// The parts of a sealed segment. Written after them, so that a segment with a manifest is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The segment's number in the store.
    pub id: u64,
    /// Bytes of the file.
    pub size: u64,
    /// Size of each part except the last.
    pub part_bytes: u64,
    /// CRC-32C of each part.
    pub parts: Vec<u32>,
}

impl Manifest {
    /// Encode the manifest.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(MANIFEST_MAGIC.to_vec());
        out.u64(self.id);
        out.u64(self.size);
        out.u64(self.part_bytes);
        out.count(self.parts.len());
        self.parts.iter().for_each(|crc| out.u32(*crc));
        out.finish()
    }

    /// Decode a manifest; None if it does not match its checksum, or its fields contradict each other.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::checked(bytes, MANIFEST_MAGIC)?;
        let manifest = Self {
            id: fields.u64()?,
            size: fields.u64()?,
            part_bytes: fields.u64()?,
            parts: fields.list(Fields::u32)?,
        };
        let parts = manifest.size.checked_div(manifest.part_bytes)?
            + u64::from(!manifest.size.is_multiple_of(manifest.part_bytes));
        (parts == manifest.parts.len() as u64)
            .then_some(manifest)
            .and_then(|manifest| fields.end(manifest))
    }
}

const HOME: &str = "sharecore-bucket=1\ncluster.id=";

/// Return the content of the object `format`, which identifies the home's cluster.
pub fn home(cluster_id: &str) -> Vec<u8> {
    assert!(!cluster_id.contains('\n'), "a cluster id is one line");
    format!("{HOME}{cluster_id}\n").into_bytes()
}

/// What is said of an object `format` without a cluster ID.
pub const FOREIGN_HOME: &str = "the object `format` is from another release or program";

/// Return the cluster ID in the object `format`; None if it is invalid or from a later release.
pub fn read_home(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let id = text.strip_prefix(HOME)?.strip_suffix('\n')?;
    (!id.is_empty() && !id.contains('\n')).then(|| id.into())
}

/// The valid checkpoints of those listed, as places and epochs in ascending order of places. A checkpoint that a fenced
/// writer uploaded late, at a place after one of a later epoch, is invalid: the later writer has deleted what no
/// checkpoint named by then.
pub fn counted(mut checkpoints: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
    checkpoints.sort_unstable();
    let mut highest = 0;
    checkpoints.retain(|(_, epoch)| {
        highest = highest.max(*epoch);
        *epoch == highest
    });
    checkpoints
}

/// Checkpoints to keep: the newest two, those younger than `history_ms`, and the newest older one, from which a restore
/// to the start of that time begins.
///
/// `checkpoints`: place, epoch and the time from which each can be used, in any order. Returns places and epochs.
pub fn kept(checkpoints: &[(u64, u32, i64)], now_ms: i64, history_ms: i64) -> BTreeSet<(u64, u32)> {
    let mut newest_first = checkpoints.to_vec();
    newest_first.sort_unstable_by_key(|(place, epoch, _)| std::cmp::Reverse((*place, *epoch)));
    let horizon = now_ms.saturating_sub(history_ms);
    let mut stays = BTreeSet::new();
    for (n, (place, epoch, ms)) in newest_first.iter().enumerate() {
        stays.insert((*place, *epoch));
        if n >= 1 && *ms <= horizon {
            break;
        }
    }
    stays
}

/// Whether a journal object may be deleted once the state before `place` is in the oldest kept checkpoint. Claims stay
/// forever: deleting one would free its place for a writer that it fenced.
pub fn may_be_swept(object: u64, place: u64, claims: &[u64]) -> bool {
    object < place && (!claims.contains(&object) || planted(Mistake::ClaimsSwept))
}
