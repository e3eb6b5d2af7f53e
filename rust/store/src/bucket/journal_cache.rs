//! Objects of the journal that a standby has read, on its own disk, so that a takeover does not read them again.
//!
//! An object never changes, and who reads it from here checks it as one from the bucket. The files have no names: they
//! are gone with the process.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::{self, IoSlice},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::files::{self, File};

/// Exists between the creation of a file and the removal of its name.
const NAME: &str = "bucket.read";
/// Limits of a file, and how many there are. A journal reaches back over about one segment of 64 MB and 4,096 objects
/// before its newest checkpoint.
const FILE_BYTES: u64 = 32 << 20;
const FILE_OBJECTS: usize = 4096;
const FILES_MAX: usize = 8;

/// The newest objects of a journal, up to 256 MB of them.
#[derive(Debug)]
pub struct JournalCache {
    dir: PathBuf,
    files: Mutex<VecDeque<Part>>,
}

#[derive(Debug)]
struct Part {
    file: File,
    bytes: u64,
    /// Position and size of each object, by place.
    objects: BTreeMap<u64, (u64, usize)>,
}

impl Part {
    fn create(dir: &Path) -> io::Result<Self> {
        let path = dir.join(NAME);
        let file = File::create(&path).or_else(|_| {
            // of a broker that has never led
            fs::create_dir_all(dir)?;
            File::create(&path)
        })?;
        files::remove(&path)?;
        Ok(Self {
            file,
            bytes: 0,
            objects: BTreeMap::new(),
        })
    }

    fn is_full(&self) -> bool {
        self.bytes >= FILE_BYTES || self.objects.len() >= FILE_OBJECTS
    }

    fn add(&mut self, place: u64, object: &[u8]) -> io::Result<()> {
        let pieces = &mut [IoSlice::new(object)];
        self.file.write_all_at(pieces, self.bytes)?;
        self.objects.insert(place, (self.bytes, object.len()));
        self.bytes += object.len() as u64;
        Ok(())
    }

    fn get(&self, place: u64) -> Option<Vec<u8>> {
        let (at, size) = *self.objects.get(&place)?;
        let mut object = vec![0; size];
        // the bucket has it, too
        self.file.read_exact_at(&mut object, at).ok()?;
        Some(object)
    }
}

impl JournalCache {
    /// A cache on the disk of a directory, which may not exist.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.into(),
            files: Mutex::default(),
        }
    }

    /// Keep the object at a place. If the disk refuses, nothing is kept.
    pub(super) fn add(&self, place: u64, object: &[u8]) {
        let mut files = self.lock();
        if self.try_add(&mut files, place, object).is_err() {
            // who wants an object reads it from the bucket, and the disk has room for others
            files.clear();
        }
    }

    fn try_add(&self, files: &mut VecDeque<Part>, place: u64, object: &[u8]) -> io::Result<()> {
        if files.back().is_none_or(Part::is_full) {
            files.push_back(Part::create(&self.dir)?);
        }
        if files.len() > FILES_MAX {
            files.pop_front();
        }
        match files.back_mut() {
            Some(newest) => newest.add(place, object),
            None => Ok(()),
        }
    }

    /// Return the object at a place; None if it is not kept.
    pub(super) fn get(&self, place: u64) -> Option<Vec<u8>> {
        self.lock().iter().rev().find_map(|part| part.get(place))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Keep nothing of what was read so far.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Part>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_objects_are_kept_in_files_without_names() {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = JournalCache::new(dir.path());
        assert_eq!(cache.get(1), None);
        let places = (FILE_OBJECTS * FILES_MAX) as u64 + 1;
        for place in 1..=places {
            cache.add(place, &place.to_le_bytes());
        }
        let oldest = FILE_OBJECTS as u64 + 1;
        assert_eq!(cache.get(oldest - 1), None, "it was dropped");
        for place in [oldest, places / 2, places] {
            assert_eq!(cache.get(place), Some(place.to_le_bytes().to_vec()));
        }
        assert_eq!(cache.get(places + 1), None);
        let names = fs::read_dir(dir.path()).expect("readable").count();
        assert_eq!(names, 0);
    }

    #[test]
    fn a_disk_that_refuses_keeps_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("data");
        fs::write(&path, b"").expect("written");
        let cache = JournalCache::new(&path);
        cache.add(1, b"object");
        assert_eq!(cache.get(1), None);
        fs::remove_file(&path).expect("removed");
        cache.add(2, b"object");
        assert_eq!(cache.get(2), Some(b"object".to_vec()));
    }
}
