//! Reading objects during a restore.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use sharecore_bucket::{
    Answer, Bucket, Manifest, Segment, What, ask_until_definite, counted, list_all, names,
};

use super::{
    journal_cache::JournalCache,
    local::{self, Local},
    restore::{BucketError, Restoring},
};
use crate::{error::StoreError, evicted, files::File, index};

/// How often a request is tried.
const ATTEMPTS: u32 = 6;
/// Objects read at a time, and the size of the parts among them.
const OBJECTS: usize = 32;
const PARTS_BYTES: u64 = 64 << 20;

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
    fn ask(&mut self, whats: &[What]) -> Result<Vec<Answer>, BucketError> {
        let answers = ask_until_definite(self.bucket, whats, ATTEMPTS).map_err(|(at, why)| {
            let what = &whats[at];
            BucketError::Unreachable(format!("{} {}: {why}", what.kind(), what.name()))
        })?;
        let bytes = answers.iter().map(|answer| match answer {
            Answer::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        });
        self.read.bytes += bytes.sum::<u64>();
        (self.progress)(&self.read);
        Ok(answers)
    }

    /// Return objects; None for absent ones.
    pub(super) fn all(
        &mut self,
        names: impl Iterator<Item = String>,
    ) -> Result<Vec<Option<Vec<u8>>>, BucketError> {
        let whats = names.map(|name| What::Get { name, range: None });
        let answers = self.ask(&whats.collect::<Vec<_>>())?;
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
        Ok(match self.ask(&[list])?.pop() {
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
        self.all_segments(&[segment])?;
        Ok(match self.cached(segment) {
            Some((dir, _)) => local::path(dir, segment),
            None => local::path(self.dir, segment),
        })
    }

    /// The directory that already has a segment, and its size.
    fn cached(&self, segment: Segment) -> Option<(&'a Path, u64)> {
        let (dir, local) = self.cache?;
        local.get(&segment).map(|size| (dir, *size))
    }

    /// Write the files of segments, unless they exist. Several objects are read at a time.
    pub(super) fn all_segments(&mut self, segments: &[Segment]) -> Result<(), BucketError> {
        let mut missing = Vec::new();
        for segment in segments {
            if let Some((_, size)) = self.cached(*segment) {
                self.segments.insert(*segment, size);
            } else if File::open(&local::path(self.dir, *segment)).is_err() {
                missing.push(*segment);
            }
        }
        for some in missing.chunks(OBJECTS) {
            let fetched = self.manifests(some)?;
            if self.is_bounded {
                self.ends(&fetched)?;
            } else {
                self.whole(&fetched)?;
            }
        }
        Ok(())
    }

    fn manifests(&mut self, segments: &[Segment]) -> Result<Vec<Fetched>, BucketError> {
        let bodies = self.all(segments.iter().map(|it| names::manifest(*it)))?;
        let decoded = segments.iter().zip(bodies).map(|(segment, body)| {
            let name = names::manifest(*segment);
            let damaged = |what: &str| BucketError::Damaged(format!("{name} {what}"));
            let body = body.ok_or_else(|| damaged("is missing"))?;
            let manifest = Manifest::decode(&body).filter(|it| it.id == segment.id);
            let manifest = manifest.filter(|it| !it.parts.is_empty());
            Ok(Fetched {
                segment: *segment,
                path: local::path(self.dir, *segment),
                manifest: manifest.ok_or_else(|| damaged("does not match its checksum"))?,
            })
        });
        decoded.collect()
    }

    fn written(&mut self, fetched: &Fetched) {
        self.segments.insert(fetched.segment, fetched.manifest.size);
        self.read.segments += 1;
        (self.progress)(&self.read);
    }

    /// Write files of segments with their indexes alone.
    fn ends(&mut self, fetched: &[Fetched]) -> Result<(), BucketError> {
        let with_last = fetched.iter().map(|it| (it, it.manifest.parts.len()));
        for some in batches(&with_last.collect::<Vec<_>>()) {
            // each with the number of the first part read so far, and all from there on
            let mut open: Vec<(&Fetched, usize, Vec<u8>)> = some
                .iter()
                .map(|(it, end)| (*it, *end, Vec::new()))
                .collect();
            while !open.is_empty() {
                let before: Vec<_> = open.iter().map(|(it, first, _)| (*it, first - 1)).collect();
                let bodies = self.parts(&before)?;
                let read = open.into_iter().zip(bodies);
                let read = read.map(|((it, first, mut kept), mut body)| {
                    body.append(&mut kept);
                    (it, first - 1, body)
                });
                open = Vec::new();
                for (it, first, kept) in read.collect::<Vec<_>>() {
                    if it.write_end(&kept).map_err(StoreError::io(&it.path))? {
                        self.written(it);
                    } else {
                        open.push((it, first, kept));
                    }
                }
            }
        }
        Ok(())
    }

    /// Read one part of each of these segments.
    fn parts(&mut self, wanted: &[(&Fetched, usize)]) -> Result<Vec<Vec<u8>>, BucketError> {
        let name = |(it, part): &(&Fetched, usize)| names::part(it.segment, *part as u32);
        let bodies = self.all(wanted.iter().map(name))?;
        let checked = wanted.iter().zip(bodies).map(|(of, body)| {
            let (it, part) = of;
            checked(&name(of), body, it.manifest.parts[*part])
        });
        checked.collect()
    }

    fn whole(&mut self, fetched: &[Fetched]) -> Result<(), BucketError> {
        let parts = fetched
            .iter()
            .flat_map(|it| (0..it.manifest.parts.len()).map(move |part| (it, part)));
        let parts: Vec<_> = parts.collect();
        let mut file = None;
        for some in batches(&parts) {
            for ((it, part), body) in some.iter().zip(self.parts(some)?) {
                if *part == 0 {
                    file = Some(File::create(&it.path).map_err(StoreError::io(&it.path))?);
                }
                let Some(file) = &mut file else { continue };
                let mut written = file.write_all(&body);
                if part + 1 == it.manifest.parts.len() {
                    written = written.and_then(|()| file.sync_data());
                    self.written(it);
                }
                written.map_err(StoreError::io(&it.path))?;
            }
        }
        Ok(())
    }
}

/// A segment of which the manifest was read.
struct Fetched {
    segment: Segment,
    path: PathBuf,
    manifest: Manifest,
}

impl Fetched {
    /// Write the file with the index alone, or all of it, if these last bytes of the segment have that.
    fn write_end(&self, kept: &[u8]) -> io::Result<bool> {
        let before = self.manifest.size - kept.len() as u64;
        if before == 0 {
            let mut file = File::create(&self.path)?;
            file.write_all(kept)?;
            file.sync_data()?;
            return Ok(true);
        }
        let Some(from) = index::start_within(kept, self.manifest.size) else {
            return Ok(false);
        };
        let index = &kept[(from - before) as usize..];
        evicted::write_fetched(&self.path, self.segment, &self.manifest, index)?;
        Ok(true)
    }
}

/// Parts that are read together.
fn batches<'a, 'b>(
    parts: &'b [(&'a Fetched, usize)],
) -> impl Iterator<Item = &'b [(&'a Fetched, usize)]> {
    let largest = parts.iter().map(|(it, _)| it.manifest.part_bytes).max();
    let count = PARTS_BYTES / largest.unwrap_or(1).max(1);
    parts.chunks(count.clamp(1, OBJECTS as u64) as usize)
}

fn checked(name: &str, body: Option<Vec<u8>>, crc: u32) -> Result<Vec<u8>, BucketError> {
    let body = body.ok_or_else(|| BucketError::Damaged(format!("{name} is missing")))?;
    if crc32c::crc32c(&body) != crc {
        let what = format!("{name} does not match its checksum");
        return Err(BucketError::Damaged(what));
    }
    Ok(body)
}
