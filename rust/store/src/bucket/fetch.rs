//! Reading objects during a restore.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use sharecore_bucket::{Answer, Bucket, Manifest, Segment, What, counted, list_all, names};

use super::{
    journal_cache::JournalCache,
    local::{self, Local},
    restore::{BucketError, Restoring},
};
use crate::{error::StoreError, evicted, files::File, index};

/// How often a request is tried.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(100);
/// Parts of a segment read at a time.
const PARTS: usize = 4;

pub(super) struct Fetch<'a, 'b> {
    bucket: &'a mut (dyn Bucket + 'b),
    dir: &'a Path,
    progress: &'a mut (dyn FnMut(&Restoring) + 'b),
    /// A directory that already has some segments, and which ones.
    cache: Option<(&'a Path, &'a Local)>,
    journal: Option<&'a JournalCache>,
    /// The segments needed, with sizes.
    pub(super) segments: Local,
    pub(super) read: Restoring,
    /// Fetch only the ends of sealed segments, with their indexes.
    pub(super) is_bounded: bool,
}

impl<'a, 'b> Fetch<'a, 'b> {
    pub(super) fn new(
        bucket: &'a mut (dyn Bucket + 'b),
        dir: &'a Path,
        cache: Option<(&'a Path, &'a Local)>,
        journal: Option<&'a JournalCache>,
        progress: &'a mut (dyn FnMut(&Restoring) + 'b),
    ) -> Self {
        Self {
            bucket,
            dir,
            progress,
            cache,
            journal,
            segments: Local::new(),
            read: Restoring::default(),
            is_bounded: false,
        }
    }

    /// Ask until the answers are definite, or attempts run out.
    fn ask(&mut self, whats: Vec<What>) -> Result<Vec<Answer>, BucketError> {
        let mut answers = self.bucket.ask_all(whats.clone());
        for (what, answer) in whats.into_iter().zip(&mut answers) {
            let mut attempt = 1;
            while let Answer::Unknown(why) = answer {
                if attempt == ATTEMPTS {
                    let why = format!("{} {}: {why}", what.kind(), what.name());
                    return Err(BucketError::Unreachable(why));
                }
                self.bucket.pause(PAUSE * 2_u32.pow(attempt - 1));
                attempt += 1;
                *answer = self.bucket.ask(what.clone());
            }
            if let Answer::Bytes(bytes) = answer {
                self.read.bytes += bytes.len() as u64;
            }
        }
        (self.progress)(&self.read);
        Ok(answers)
    }

    /// Return objects; None for absent ones.
    pub(super) fn all(
        &mut self,
        names: impl Iterator<Item = String>,
    ) -> Result<Vec<Option<Vec<u8>>>, BucketError> {
        let whats = names.map(|name| What::Get { name, range: None });
        let answers = self.ask(whats.collect())?;
        let body = |answer| match answer {
            Answer::Bytes(bytes) => Some(bytes),
            _ => None,
        };
        Ok(answers.into_iter().map(body).collect())
    }

    /// Return an object of the journal that was read before.
    pub(super) fn known(&self, place: u64) -> Option<Vec<u8>> {
        self.journal?.get(place)
    }

    pub(super) fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, BucketError> {
        let found = self.all(std::iter::once(name.to_string()))?;
        Ok(found.into_iter().next().flatten())
    }

    /// Return one page of a list.
    pub(super) fn page(&mut self, list: What) -> Result<Vec<(String, u64)>, BucketError> {
        Ok(match self.ask(vec![list])?.pop() {
            Some(Answer::Names(page)) => page,
            _ => Vec::new(),
        })
    }

    /// Return place and epoch of all checkpoints, ascending.
    pub(super) fn checkpoints(&mut self) -> Result<Vec<(u64, u32)>, BucketError> {
        let found = list_all(names::CHECKPOINTS, |list| self.page(list))?;
        let places = found.iter().map(|(name, _)| name);
        let places = places.filter_map(|name| names::parse_checkpoint(name));
        Ok(counted(places.collect()))
    }

    /// Fetch all segments from now on.
    pub(super) fn without_cache(&mut self) {
        self.cache = None;
    }

    /// Write a segment's file, unless it exists.
    pub(super) fn segment(&mut self, segment: Segment) -> Result<PathBuf, BucketError> {
        if let Some((dir, local)) = self.cache
            && let Some(size) = local.get(&segment)
        {
            self.segments.insert(segment, *size);
            return Ok(local::path(dir, segment));
        }
        let path = local::path(self.dir, segment);
        if File::open(&path).is_ok() {
            return Ok(path);
        }
        let name = names::manifest(segment);
        let missing = |name: &str| BucketError::Damaged(format!("{name} is missing"));
        let bytes = self.get(&name)?.ok_or_else(|| missing(&name))?;
        let manifest = Manifest::decode(&bytes).filter(|it| it.id == segment.id);
        let manifest = manifest
            .ok_or_else(|| BucketError::Damaged(format!("{name} does not match its checksum")))?;
        if self.is_bounded {
            self.end(&path, segment, &manifest)?;
        } else {
            self.whole(&path, segment, &manifest)?;
        }
        self.segments.insert(segment, manifest.size);
        self.read.segments += 1;
        (self.progress)(&self.read);
        Ok(path)
    }

    /// Write the file of a segment with its index alone.
    fn end(
        &mut self,
        path: &Path,
        segment: Segment,
        manifest: &Manifest,
    ) -> Result<(), BucketError> {
        let mut kept = Vec::new();
        for part in (0..manifest.parts.len()).rev() {
            let of = (part as u32, manifest.parts[part]);
            let mut body = self.part(segment, of)?;
            body.append(&mut kept);
            kept = body;
            if kept.len() as u64 == manifest.size {
                break;
            }
            if let Some(from) = index::start_within(&kept, manifest.size) {
                let before = manifest.size - kept.len() as u64;
                let index = &kept[(from - before) as usize..];
                let written = evicted::write_fetched(path, segment, manifest, index);
                return Ok(written.map_err(StoreError::io(path))?);
            }
        }
        // all of it was read
        let mut file = File::create(path).map_err(StoreError::io(path))?;
        let written = file.write_all(&kept).and_then(|()| file.sync_data());
        Ok(written.map_err(StoreError::io(path))?)
    }

    fn part(&mut self, segment: Segment, (part, crc): (u32, u32)) -> Result<Vec<u8>, BucketError> {
        let name = names::part(segment, part);
        let body = self.get(&name)?;
        checked(&name, body, crc)
    }

    fn whole(
        &mut self,
        path: &Path,
        segment: Segment,
        manifest: &Manifest,
    ) -> Result<(), BucketError> {
        let mut file = File::create(path).map_err(StoreError::io(path))?;
        let parts: Vec<(u32, u32)> = (0..).zip(manifest.parts.iter().copied()).collect();
        for some in parts.chunks(PARTS) {
            let bodies = self.all(some.iter().map(|(part, _)| names::part(segment, *part)))?;
            for ((part, crc), body) in some.iter().zip(bodies) {
                let name = names::part(segment, *part);
                let body = checked(&name, body, *crc)?;
                file.write_all(&body).map_err(StoreError::io(path))?;
            }
        }
        Ok(file.sync_data().map_err(StoreError::io(path))?)
    }
}

fn checked(name: &str, body: Option<Vec<u8>>, crc: u32) -> Result<Vec<u8>, BucketError> {
    let body = body.ok_or_else(|| BucketError::Damaged(format!("{name} is missing")))?;
    if crc32c::crc32c(&body) != crc {
        let what = format!("{name} does not match its checksum");
        return Err(BucketError::Damaged(what));
    }
    Ok(body)
}
