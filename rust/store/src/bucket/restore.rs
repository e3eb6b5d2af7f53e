//! Restores a directory from a bucket, to the state after an object of the journal.

mod error;
mod journal;

use std::{fs, io::ErrorKind, path::Path};

use sharecore_bucket::{Bucket, Checkpoint, FOREIGN_HOME, Segment, Step, Walk, names, read_home};

use super::{
    copy::{Copied, segments_added},
    fetch::Fetch,
    journal_cache::JournalCache,
    journal_end::JournalEnd,
    local::Local,
    own,
    read_ahead::ReadAhead,
};
use crate::{
    checkpoint::{self, Since},
    error::StoreError,
    files::{self, Access, File},
    format,
    frame::{FRAME_HEADER, Frame, body_len},
    segment::{self, Kind, SEGMENT_HEADER},
};

pub use error::BucketError;
use journal::Journal;

/// How often a restore is retried when the bucket changes meanwhile.
pub(super) const ATTEMPTS: usize = 3;

/// The point to restore to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The newest state in the bucket.
    Latest,
    /// The last object created at or before this time, in milliseconds since 1970.
    At(i64),
    /// The object at this place of the journal, or the last before it.
    Place(u64),
}

/// Progress of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restoring {
    /// Objects of the journal read.
    pub objects: u64,
    /// Sealed segments read.
    pub segments: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The cluster of the data.
    pub cluster_id: String,
    /// The place of the last object restored.
    pub place: u64,
    /// When that object was created, in milliseconds since 1970.
    pub ms: i64,
    /// The number of the last frame.
    pub frame: u64,
    /// Totals read.
    pub read: Restoring,
    /// The end of the journal, if that is what was restored.
    pub end: Option<JournalEnd>,
}

/// Restore a directory, which must be empty or missing, from the copy in a bucket. A broker may be writing the copy.
///
/// Restores only the store's files: other files of a broker are the caller's. `progress` is called after each answer. A
/// failed restore leaves the directory unchanged.
pub fn restore(
    bucket: &mut dyn Bucket,
    dir: &Path,
    moment: Moment,
    progress: &mut dyn FnMut(&Restoring),
) -> Result<Restored, BucketError> {
    fs::create_dir_all(dir).map_err(StoreError::io(dir))?;
    let entries = files::list(dir).map_err(StoreError::io(dir))?;
    if !entries.is_empty() {
        return Err(BucketError::NotEmpty(dir.into()));
    }
    let mut n = 1;
    loop {
        let Tried {
            result, is_stale, ..
        } = attempt(bucket, dir, moment, (None, None), false, progress);
        if result.is_ok() {
            return result;
        }
        for path in files::list(dir).map_err(StoreError::io(dir))? {
            // the returned error says more
            let _ = files::remove(&path);
        }
        if !is_stale || n == ATTEMPTS {
            return result;
        }
        n += 1;
    }
}

/// The result of an attempt.
pub(super) struct Tried {
    pub(super) result: Result<Restored, BucketError>,
    /// It failed, and the bucket has changed meanwhile: a retry may succeed.
    pub(super) is_stale: bool,
    /// The segments of the state.
    pub(super) segments: Local,
}

/// Restore an empty directory, once. Segments of a directory, and objects of the journal, that are known are not fetched.
pub(super) fn attempt(
    bucket: &mut dyn Bucket,
    dir: &Path,
    moment: Moment,
    (segments, journal): (Option<(&Path, &Local)>, Option<&JournalCache>),
    is_bounded: bool,
    progress: &mut dyn FnMut(&Restoring),
) -> Tried {
    let mut restore = Restore {
        fetch: Fetch::new(bucket, dir, segments, journal, progress),
        dir,
        moment,
        known: Vec::new(),
        is_bounded,
        rewritten: Vec::new(),
    };
    let result = restore.run();
    Tried {
        is_stale: result.is_err() && restore.is_stale(),
        segments: restore.fetch.segments,
        result,
    }
}

struct Restore<'a, 'b> {
    fetch: Fetch<'a, 'b>,
    dir: &'a Path,
    moment: Moment,
    /// Place and epoch of all checkpoints, ascending.
    known: Vec<(u64, u32)>,
    /// Of the segments before the checkpoint, only the indexes are needed.
    is_bounded: bool,
    /// Rewritten segments that restored frames add, in the order of the frames.
    rewritten: Vec<Segment>,
}

/// The last object restored: its place, its creation time, and the number after its last frame.
type End = (u64, i64, u64);
/// The last object restored, and what the journal holds up to its end, if that was reached.
type Followed = (End, Option<Copied>);

/// Where the state before a restored moment begins.
struct Origin {
    /// The first checkpoint; `None` if the journal begins empty.
    checkpoint: Option<Checkpoint>,
    /// Later ones, ascending: objects before the last of them may be gone.
    later: Vec<Checkpoint>,
}

impl Restore<'_, '_> {
    fn run(&mut self) -> Result<Restored, BucketError> {
        let home = self.fetch.get(names::FORMAT)?;
        let home = home.ok_or_else(|| BucketError::Nothing("the bucket holds no copy".into()))?;
        let cluster_id =
            read_home(&home).ok_or_else(|| BucketError::Damaged(FOREIGN_HOME.into()))?;
        self.known = self.fetch.checkpoints()?;
        let from = self.choose()?;
        if !from.later.is_empty() {
            // frames after the moment are cut off from them
            self.fetch.without_cache();
        }
        let mut named: Vec<Segment> = Vec::new();
        let mut since = Since {
            segment: 1,
            frame: 1,
        };
        if let Some(checkpoint) = &from.checkpoint {
            let (at, _) = checkpoint::parts(&checkpoint.store).ok_or_else(|| {
                BucketError::Damaged("a checkpoint holds none that this release can read".into())
            })?;
            since = at;
            self.fetch.is_bounded = self.is_bounded;
            self.fetch.all_segments(&checkpoint.segments)?;
            self.fetch.is_bounded = false;
            checkpoint::save(self.dir, since.segment, &checkpoint.store)?;
            named.extend(checkpoint.named());
        }
        named.extend(from.later.iter().flat_map(Checkpoint::named));
        let ((place, ms, frame), copied) = self.follow(&from, since, &named)?;
        self.fetch
            .all_segments(&std::mem::take(&mut self.rewritten))?;
        if place == 0 {
            // an empty directory would be served as a new cluster
            return Err(too_old());
        }
        let first = Kind::Journal.path(self.dir, since.segment);
        match File::open(&first) {
            // it has no frames so far, or none at all: after a failed write, as on a full disk, another one follows
            Err(error) if error.kind() == ErrorKind::NotFound => {
                segment::create(self.dir, since.segment, since.frame, true)?;
            }
            opened => drop(opened.map_err(StoreError::io(&first))?),
        }
        format::write(self.dir)?;
        segment::sync_dir(self.dir)?;
        Ok(Restored {
            cluster_id,
            place,
            ms,
            frame: frame - 1,
            read: self.fetch.read,
            end: copied.map(|copied| JournalEnd {
                checkpoint: from.checkpoint.map(|it| (it.place, it.epoch)),
                copied: Box::new(copied),
            }),
        })
    }

    /// Whether the bucket has a newer checkpoint than at the start: objects that it covers may have been deleted.
    fn is_stale(&mut self) -> bool {
        let now = self.fetch.checkpoints();
        now.is_ok_and(|now| now.last() > self.known.last())
    }

    fn choose(&mut self) -> Result<Origin, BucketError> {
        let mut later: Vec<Checkpoint> = Vec::new();
        let mut checkpoint = None;
        for (place, epoch) in self.known.clone().into_iter().rev() {
            let name = names::checkpoint(place, epoch);
            let Some(bytes) = self.fetch.get(&name)? else {
                return Err(BucketError::Damaged(format!("{name} is missing")));
            };
            let Some(read) = Checkpoint::decode(&bytes) else {
                // objects covered by the newest are still there, back to the previous one
                if later.is_empty() {
                    continue;
                }
                let what = format!("{name} does not match its checksum");
                return Err(BucketError::Damaged(what));
            };
            let is_before = match self.moment {
                Moment::Latest => true,
                Moment::At(ms) => read.usable_ms <= ms,
                Moment::Place(at) => read.usable_from <= at,
            };
            if is_before {
                checkpoint = Some(read);
                break;
            }
            later.push(read);
        }
        later.reverse();
        Ok(Origin { checkpoint, later })
    }

    fn wants(&self, place: u64, ms: i64) -> bool {
        match self.moment {
            Moment::Latest => true,
            Moment::At(at) => ms <= at,
            Moment::Place(at) => place <= at,
        }
    }

    /// Restore the commits after the checkpoint: from sealed segments, and then object by object.
    fn follow(
        &mut self,
        from: &Origin,
        since: Since,
        named: &[Segment],
    ) -> Result<Followed, BucketError> {
        let begin = from.checkpoint.as_ref();
        let mut copied = begin.map_or_else(Copied::default, Copied::from);
        let mut walk = copied.walk.clone();
        let mut end = (walk.place - 1, walk.ms, walk.frame);
        let mut segment = since.segment;
        let mut is_reached = false;
        for later in &from.later {
            // a checkpoint that restarts the journal says nothing about earlier frames
            if later.folded.is_empty() && later.frame != walk.frame {
                break;
            }
            let mut folded = later.folded.iter().filter(|it| it.place >= walk.place);
            is_reached = !folded.all(|it| {
                let wanted = self.wants(it.place, it.ms);
                if wanted {
                    end = (it.place, it.ms, it.frame);
                }
                wanted
            });
            if is_reached {
                break;
            }
            walk = Walk::from(later);
            segment = checkpoint::parts(&later.store).map_or(segment, |(at, _)| at.segment);
        }
        self.folded(begin.is_none(), end.2, since, named)?;
        if is_reached {
            return Ok((end, None));
        }
        if walk == Walk::default()
            && !from.later.is_empty()
            && self.fetch.get(&walk.name())?.is_none()
        {
            return Err(too_old());
        }
        copied.walk = walk;
        self.walk(copied, end, Journal::new(self.dir, segment), named)
    }

    /// Restore frames below one from sealed segments: their journal objects may be gone.
    fn folded(
        &mut self,
        is_first: bool,
        end: u64,
        since: Since,
        named: &[Segment],
    ) -> Result<(), BucketError> {
        let mut frame = since.frame;
        let journals = named
            .iter()
            .filter(|it| !it.is_compact && it.id >= since.segment);
        let mut journals: Vec<Segment> = journals.copied().collect();
        journals.sort_unstable();
        journals.dedup_by_key(|it| it.id);
        for segment in journals {
            if frame >= end {
                break;
            }
            let path = self.fetch.segment(segment)?;
            if segment::first_frame(&path, segment.id)? != Some(frame) {
                return Err(if is_first {
                    too_old()
                } else {
                    BucketError::Damaged(format!(
                        "{} does not continue with frame {frame}",
                        names::manifest(segment)
                    ))
                });
            }
            let bytes = files::read(&path).map_err(StoreError::io(&path))?;
            let mut at = SEGMENT_HEADER as usize;
            while frame < end {
                let size = body_len(&bytes[at..]).map(|body| FRAME_HEADER + body);
                let whole = size.and_then(|size| bytes.get(at..at + size));
                let Some(read) = whole.and_then(Frame::read).filter(|it| it.number == frame) else {
                    break;
                };
                for id in super::frames::added(&read) {
                    self.rewrites(id, named, 0);
                }
                at += read.size;
                frame += 1;
            }
            // remove the index, and frames after the moment
            let file = File::open_for(&path, Access::Write);
            file.and_then(|file| file.set_len(at as u64).and_then(|()| file.sync_data()))
                .map_err(StoreError::io(&path))?;
        }
        if frame < end {
            return Err(if is_first {
                too_old()
            } else {
                BucketError::Damaged(format!("frames {frame} to {} are in no segment", end - 1))
            });
        }
        Ok(())
    }

    /// Restore frames object by object.
    fn walk(
        &mut self,
        mut copied: Copied,
        mut end: End,
        mut journal: Journal<'_>,
        named: &[Segment],
    ) -> Result<Followed, BucketError> {
        let mut ahead = ReadAhead::default();
        let mut known = None;
        let mut most = u64::MAX;
        'walk: loop {
            let walk = &copied.walk;
            let places = walk.place..walk.place + ahead.objects().min(most);
            let objects = if let Some(object) = self.fetch.known(walk.place) {
                known = Some((walk.name(), object.clone()));
                // little was written since
                most = 1;
                vec![Some(object)]
            } else {
                if let Some((name, object)) = known.take() {
                    self.check_known(&name, object)?;
                }
                most = most.saturating_mul(2);
                self.fetch.all(places.clone().map(names::journal))?
            };
            for (place, object) in places.zip(objects) {
                let walk = &copied.walk;
                // a claim skips places
                if place != walk.place {
                    continue;
                }
                let Some(object) = object else {
                    let behind = self.fetch.page(walk.list_beyond())?;
                    let mut lost = walk.proves_gap(&behind);
                    if lost.is_none() {
                        let beyond = self.fetch.all(walk.beyond())?;
                        lost = beyond.iter().flatten().find_map(|it| walk.proves_loss(it));
                    }
                    let Some(lost) = lost else {
                        break 'walk;
                    };
                    // it may have been written since it was read
                    if self.fetch.get(&walk.name())?.is_none() {
                        return Err(BucketError::Damaged(lost));
                    }
                    continue 'walk;
                };
                ahead.note(object.len());
                self.fetch.read.objects += 1;
                let mut later = walk.clone();
                let step = later.take(&object).map_err(BucketError::Damaged)?;
                match &step {
                    // what follows has no checkpoint, or the moment is before it
                    Step::Claim(_, claim) if claim.is_base => {
                        journal.finish()?;
                        return Ok((end, None));
                    }
                    Step::Claim(..) | Step::Mark(_) => {}
                    Step::Frames(header, body) => {
                        if !self.wants(header.place, header.ms) {
                            journal.finish()?;
                            return Ok((end, None));
                        }
                        for (id, _) in segments_added(body) {
                            self.rewrites(id, named, header.epoch);
                        }
                        let place = (header.frames.segment, header.frames.at);
                        if !journal.write(place, header.frames.first, body)? {
                            let name = names::journal(header.place);
                            let what = format!("{name} does not continue where the segment ends");
                            return Err(BucketError::Damaged(what));
                        }
                        end = (header.place, header.ms, later.frame);
                    }
                }
                copied.passed(step, later);
            }
        }
        journal.finish()?;
        if self.is_stale() {
            let name = copied.walk.name();
            return Err(BucketError::Damaged(format!("{name} is gone")));
        }
        if self.moment != Moment::Latest {
            return Ok((end, None));
        }
        // the directory may continue the copy
        own::write(self.dir, &[copied.walk.writer])?;
        Ok((end, Some(copied)))
    }

    /// The newest object that was read before must be in the bucket: it names the one before it, and so on.
    fn check_known(&mut self, name: &str, object: Vec<u8>) -> Result<(), BucketError> {
        if self.fetch.get(name)? == Some(object) {
            return Ok(());
        }
        let what = format!("{name} is lost, or was another one when it was read before");
        Err(BucketError::Damaged(what))
    }

    /// A frame adds a rewritten segment: it is fetched with the others.
    fn rewrites(&mut self, id: u64, named: &[Segment], epoch: u32) {
        if self.rewritten.iter().any(|it| it.id == id) {
            return;
        }
        let known = named.iter().find(|it| it.id == id && it.is_compact);
        self.rewritten.push(known.copied().unwrap_or(Segment {
            id,
            epoch,
            is_compact: true,
        }));
    }
}

fn too_old() -> BucketError {
    BucketError::Nothing("the bucket holds no state that old".into())
}
