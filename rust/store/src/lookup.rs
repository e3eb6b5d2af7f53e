//! Work on the store's state that needs indexes from disk: they are loaded without holding the lock.

use std::{io, path::PathBuf, sync::Arc};

use crate::{
    disk::Source,
    entries::Entries,
    error::Refusal,
    files::File,
    index::{self, Stored},
    state::State,
    store::Shared,
};

/// Why work on the state stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The request is refused.
    Refused(Refusal),
    /// Something must be read from disk first.
    Missing(Missing),
}

/// A segment's file that is not open, or an index that is not in memory.
#[derive(Debug)]
pub(crate) struct Missing {
    segment: u64,
    path: PathBuf,
    file: Option<Arc<File>>,
    stored: Option<Stored>,
}

/// Files and indexes loaded for one piece of work, so that it completes however few of them the store caches.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    files: Vec<(u64, Arc<File>)>,
    indexes: Vec<(u64, Stored, Arc<Entries>)>,
    /// Segments whose file or index is unreadable, with the reason.
    unreadable: Vec<(u64, Refusal)>,
}

impl Loaded {
    fn check(&self, segment: u64) -> Result<(), Refusal> {
        let found = self.unreadable.iter().find(|(id, _)| *id == segment);
        found.map_or(Ok(()), |(_, refusal)| Err(refusal.clone()))
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Missing {
    fn refused(&self, error: &io::Error) -> Refusal {
        Refusal::Storage(format!("{}: {error}", self.path.display()))
    }
}

impl State {
    /// A segment's file.
    pub(crate) fn file(&mut self, segment: u64, loaded: &Loaded) -> Result<Arc<File>, Stop> {
        loaded.check(segment)?;
        let own = loaded.files.iter().find(|(id, _)| *id == segment);
        let file = own.map(|(_, file)| Arc::clone(file));
        file.or_else(|| self.segments.opened(segment))
            .ok_or_else(|| {
                Stop::Missing(Missing {
                    segment,
                    path: self.segments.path(segment),
                    file: None,
                    stored: None,
                })
            })
    }

    /// An index that lies in a segment.
    pub(crate) fn index(
        &mut self,
        segment: u64,
        stored: Stored,
        loaded: &Loaded,
    ) -> Result<Arc<Entries>, Stop> {
        loaded.check(segment)?;
        let mut own = loaded.indexes.iter();
        let own = own.find(|(id, at, _)| (*id, *at) == (segment, stored));
        if let Some((_, _, entries)) = own {
            return Ok(Arc::clone(entries));
        }
        if let Some(entries) = self.indexes.get(segment, stored) {
            return Ok(entries);
        }
        Err(Stop::Missing(Missing {
            segment,
            path: self.segments.path(segment),
            file: self.segments.opened(segment),
            stored: Some(stored),
        }))
    }
}

impl Shared {
    /// Runs `work` on the state, again after each load of something missing.
    ///
    /// With [`Source::Memory`] it never waits for the disk: returns `None` if it would have to.
    pub(crate) fn look_up<T>(
        &self,
        source: Source,
        mut work: impl FnMut(&mut State, &Loaded) -> Result<T, Stop>,
    ) -> Result<Option<T>, Refusal> {
        let mut loaded = Loaded::default();
        loop {
            let missing = match work(&mut self.lock(), &loaded) {
                Ok(found) => return Ok(Some(found)),
                Err(Stop::Refused(refusal)) => return Err(refusal),
                Err(Stop::Missing(missing)) => missing,
            };
            match self.fetch(&missing, source, &mut loaded) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // another segment has replaced this one meanwhile
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && !self.lock().segments.contains(missing.segment) => {}
                // `work` may succeed without it
                Err(error) => {
                    let unreadable = (missing.segment, missing.refused(&error));
                    loaded.unreadable.push(unreadable);
                }
            }
        }
    }

    /// As `look_up`, waiting for the disk.
    pub(crate) fn look_up_on_disk<T>(
        &self,
        work: impl FnMut(&mut State, &Loaded) -> Result<T, Stop>,
    ) -> Result<T, Refusal> {
        let found = self.look_up(Source::Disk, work)?;
        Ok(found.expect("the disk is waited for"))
    }

    fn fetch(&self, missing: &Missing, source: Source, loaded: &mut Loaded) -> io::Result<()> {
        let file = match &missing.file {
            Some(file) => Arc::clone(file),
            None if source == Source::Memory => return Err(io::ErrorKind::WouldBlock.into()),
            None => {
                let file = Arc::new(File::open(&missing.path)?);
                let kept = Arc::clone(&file);
                self.lock().segments.keep_open(missing.segment, kept);
                loaded.files.push((missing.segment, Arc::clone(&file)));
                file
            }
        };
        if let Some(stored) = missing.stored {
            let entries = index::load(&file, stored, source)?;
            let mut state = self.lock();
            state
                .indexes
                .keep(missing.segment, stored, Arc::clone(&entries));
            drop(state);
            loaded.indexes.push((missing.segment, stored, entries));
        }
        Ok(())
    }
}
