//! Uploads sealed segments and checkpoints, one request at a time, and then sweeps.

use std::{collections::VecDeque, io, path::Path, sync::Arc};

use sharecore_bucket::{Answer, Call, Checkpoint, Manifest, Retried, Segment, What, names};

use super::{
    copy::Copied,
    local,
    shared::{Backup, Sealed},
    sweep::Sweep,
};
use crate::{checkpoint, error::StoreError, files::File, segment::Kind};

enum Doing {
    Nothing,
    Upload(Upload),
    /// With the segment that begins after it.
    Checkpoint(u64, Box<Checkpoint>),
    Sweep,
}

struct Upload {
    segment: Segment,
    /// With the parts so far.
    manifest: Manifest,
    is_at_end: bool,
}

impl Upload {
    /// The next request: a part, or after the last one the manifest.
    fn next(&mut self, dir: &Path) -> Result<What, StoreError> {
        let (segment, manifest) = (self.segment, &mut self.manifest);
        let part = manifest.parts.len() as u64;
        let from = part * manifest.part_bytes;
        if from >= manifest.size {
            self.is_at_end = true;
            return Ok(What::Create {
                name: names::manifest(segment),
                body: Arc::new(manifest.encode()),
            });
        }
        let path = local::path(dir, segment);
        let mut body = vec![0; manifest.part_bytes.min(manifest.size - from) as usize];
        File::open(&path)
            .and_then(|file| file.read_exact_at(&mut body, from))
            .map_err(StoreError::io(&path))?;
        manifest.parts.push(crc32c::crc32c(&body));
        Ok(What::Create {
            name: names::part(segment, part as u32),
            body: Arc::new(body),
        })
    }
}

pub(super) struct Keeper {
    slot: Retried,
    doing: Doing,
    /// Segments to upload, in order.
    queue: VecDeque<(u64, Kind)>,
    /// The next checkpoint to upload.
    pending: Option<Sealed>,
    sweep: Sweep,
    epoch: u32,
    error: Option<String>,
}

impl Keeper {
    pub(super) fn new(epoch: u32, base: Option<Sealed>, history_ms: i64) -> Self {
        Self {
            slot: Retried::default(),
            doing: Doing::Nothing,
            queue: VecDeque::new(),
            pending: base,
            sweep: Sweep::new(history_ms),
            epoch,
            error: None,
        }
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.slot.error().or(self.error.as_deref())
    }

    pub(super) fn due_ms(&self) -> Option<u64> {
        self.slot.due_ms()
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Queue a sealed journal segment.
    pub(super) fn sealed(&mut self, id: u64) {
        self.queue.push_back((id, Kind::Journal));
    }

    /// Upload a segment next, unless it is being uploaded: frames wait for it.
    pub(super) fn hurry(&mut self, id: u64) {
        let is_under_way = matches!(&self.doing, Doing::Upload(it) if it.segment.id == id);
        if !is_under_way && self.queue.front() != Some(&(id, Kind::Compact)) {
            self.queue.push_front((id, Kind::Compact));
        }
    }

    /// Upload a checkpoint again, as of a later place.
    pub(super) fn again(&mut self, sealed: Sealed) {
        self.pending.get_or_insert(sealed);
    }

    /// Whether a segment's file is still to be uploaded.
    pub(super) fn needs(&self, id: u64) -> bool {
        let is_under_way = matches!(&self.doing, Doing::Upload(it) if it.segment.id == id);
        is_under_way || self.queue.iter().any(|(queued, _)| *queued == id)
    }

    /// Append the calls that are due. `answered`: all objects at places below are in the bucket.
    pub(super) fn calls(
        &mut self,
        (backup, copied, answered): (&Backup, &Copied, u64),
        now_ms: u64,
        id: &mut u64,
        calls: &mut Vec<Call>,
    ) -> Result<(), StoreError> {
        if self.slot.is_idle()
            && let Some(what) = self.next(backup, copied, answered)?
        {
            self.slot.begin(what);
        }
        self.slot.calls(now_ms, id, calls);
        Ok(())
    }

    fn next(
        &mut self,
        backup: &Backup,
        copied: &Copied,
        answered: u64,
    ) -> Result<Option<What>, StoreError> {
        if let Doing::Upload(upload) = &mut self.doing {
            return upload.next(&backup.dir).map(Some);
        }
        while let Some((id, kind)) = self.queue.pop_front() {
            if copied.uploaded.contains_key(&id) {
                continue;
            }
            let path = kind.path(&backup.dir, id);
            let size = match File::open(&path).and_then(|file| file.len()) {
                Ok(size) => size,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // a frame that adds it could never be shipped; an unnamed journal segment may go
                    if kind == Kind::Compact {
                        backup.break_off();
                        return Ok(None);
                    }
                    continue;
                }
                Err(error) => return Err(StoreError::io(&path)(error)),
            };
            let segment = Segment {
                id,
                epoch: self.epoch,
                is_compact: kind == Kind::Compact,
            };
            self.sweep.spare(segment);
            let manifest = Manifest {
                id,
                size,
                part_bytes: backup.options.part_bytes,
                parts: Vec::new(),
            };
            let mut upload = Upload {
                segment,
                manifest,
                is_at_end: false,
            };
            let what = upload.next(&backup.dir)?;
            self.doing = Doing::Upload(upload);
            return Ok(Some(what));
        }
        if let Some(what) = self.checkpoint(backup, copied, answered) {
            return Ok(Some(what));
        }
        if !self.queue.is_empty() {
            return self.next(backup, copied, answered);
        }
        let what = self.sweep.next();
        if what.is_some() {
            self.doing = Doing::Sweep;
        }
        Ok(what)
    }

    /// The request that uploads the pending checkpoint; None while something it names is missing from the bucket.
    fn checkpoint(&mut self, backup: &Backup, copied: &Copied, answered: u64) -> Option<What> {
        if self.pending.is_none() {
            let newest = backup.newest();
            self.pending = newest.filter(|it| it.since.segment > copied.checkpoint);
        }
        let pending = self.pending.as_ref()?;
        let segment = pending.since.segment;
        let Some((_, walk)) = copied.begins.iter().find(|(id, _)| *id == segment) else {
            // not shipped that far yet, or older than the journal in the bucket
            if copied.cursor.segment >= segment {
                self.pending = None;
            }
            return None;
        };
        if walk.place > answered || walk.frame != pending.since.frame {
            return None;
        }
        // the bucket's objects must reach as far as the indexes
        let usable = if pending.frame <= walk.frame {
            (walk.place - 1, walk.ms)
        } else {
            let mut shipped = copied.folded.iter().filter(|it| it.place < answered);
            let reaching = shipped.find(|it| it.frame >= pending.frame)?;
            (reaching.place, reaching.ms)
        };
        let (_, sealed) = checkpoint::parts(&pending.checkpoint)?;
        let absent = |id: &u64| !copied.uploaded.contains_key(id);
        let mut waits = false;
        for (id, kind) in sealed.iter().filter(|(id, _)| absent(id)) {
            if File::open(&kind.path(&backup.dir, *id)).is_err() {
                // another checkpoint follows, which does not name it
                self.pending = None;
                return None;
            }
            self.queue.push_back((*id, *kind));
            waits = true;
        }
        if waits {
            return None;
        }
        let segments = sealed.iter().filter_map(|(id, _)| copied.uploaded.get(id));
        let segments: Vec<Segment> = segments.copied().collect();
        let is_between = |it: &&Segment| !segments.contains(*it);
        let checkpoint = Checkpoint {
            place: walk.place,
            epoch: walk.epoch,
            writer: walk.writer,
            window: walk.window,
            frame: walk.frame,
            before: walk.before,
            ms: walk.ms,
            usable_from: usable.0,
            usable_ms: usable.1,
            claims: walk.claims.clone(),
            between: copied.fresh.iter().filter(is_between).copied().collect(),
            segments,
            folded: copied
                .folded
                .iter()
                .filter(|it| it.place < walk.place)
                .copied()
                .collect(),
            store: pending.checkpoint.to_vec(),
        };
        self.pending = None;
        let what = What::Create {
            name: names::checkpoint(walk.place, self.epoch),
            body: Arc::new(checkpoint.encode()),
        };
        self.doing = Doing::Checkpoint(segment, Box::new(checkpoint));
        Some(what)
    }

    /// Handle an answer, if it is for the current call.
    pub(super) fn answer(
        &mut self,
        backup: &Backup,
        copied: &mut Copied,
        (id, answer): (u64, Answer),
        (now_ms, wall_ms): (u64, i64),
    ) {
        let Some((_, answer)) = self.slot.answer(id, answer, now_ms) else {
            return;
        };
        // names contain the epoch, in which nobody else writes: an existing object is from an earlier attempt
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Upload(upload) if upload.is_at_end => {
                copied.is_there(upload.segment);
                if backup.is_home {
                    // an unrecorded file is fetched again
                    let _ = local::add(&backup.dir, upload.segment, upload.manifest.size);
                }
                backup.update(|status| status.segments += 1);
            }
            Doing::Upload(upload) => self.doing = Doing::Upload(upload),
            Doing::Checkpoint(segment, checkpoint) => {
                copied.covered(segment, &checkpoint);
                backup.update(|status| status.checkpoint_place = checkpoint.place);
                self.error = None;
                self.sweep.begin((checkpoint.place, self.epoch), wall_ms);
                // already uploaded, and named by the next checkpoint
                copied.fresh.iter().for_each(|it| self.sweep.spare(*it));
            }
            Doing::Sweep => self.error = self.sweep.answer(&answer).err(),
        }
    }
}
