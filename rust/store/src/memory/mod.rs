//! A memory disk for simulations: it fails on demand, and after a crash it holds what a real disk may hold.
//!
//! After a crash, unsynced writes may be present, missing, truncated or garbage, and later ones may survive without
//! earlier ones; synced writes stay. Changes of names survive in order, up to any one of them. A sync may only be
//! reported, and a write may be misdirected: the disk counts the harm done.

use std::{
    collections::BTreeMap,
    io::{self, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::files::Access;

use content::{Content, Random};

mod content;
mod image;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static MOUNTS: RwLock<Vec<(PathBuf, MemoryDisk)>> = RwLock::new(Vec::new());

/// The disk mounted on a directory, for it and the files in it.
pub(crate) fn mounted(path: &Path) -> Option<MemoryDisk> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mounts = MOUNTS.read().unwrap_or_else(PoisonError::into_inner);
    let found = mounts
        .iter()
        .find(|(dir, _)| path == dir || path.parent() == Some(dir));
    found.map(|(_, disk)| disk.clone())
}

/// An operation of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Opening or creating a file.
    Open,
    /// Writing or truncating.
    Write,
    /// Making a file's content or a directory's names durable.
    Sync,
    /// Renaming or removing a file.
    Rename,
    /// Reading.
    Read,
}

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Fails(i32),
    /// Reported success of a sync that was skipped, or a write that was misdirected.
    Lies,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    operation: Operation,
    outcome: Outcome,
    skip: u64,
    times: u64,
}

type Node = Arc<Mutex<Content>>;
type Names = BTreeMap<PathBuf, Node>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn dead() -> io::Error {
    io::Error::other("the disk is gone")
}

#[derive(Debug)]
struct Inner {
    names: Names,
    /// The names after each change since the last sync; the first entry is durable.
    history: Vec<Names>,
    planned: Vec<Planned>,
    random: Random,
    /// Counts crashes: files opened before a crash are invalid.
    life: u64,
    /// After this many more changes the disk is gone.
    left: Option<u64>,
    capacity: u64,
    cold_per_mille: u64,
    rot_per_mille: u64,
    /// The names' last sync was only reported.
    names_claimed: bool,
    harmed: u64,
    operations: u64,
}

impl Inner {
    /// Checks whether an operation may happen; false if it is only reported.
    fn allow(&mut self, operation: Operation) -> io::Result<bool> {
        if self.left == Some(0) {
            return Err(dead());
        }
        self.operations += 1;
        if operation != Operation::Read
            && let Some(left) = &mut self.left
        {
            *left -= 1;
            if *left == 0 {
                return Err(dead());
            }
        }
        self.planned.retain(|planned| planned.times > 0);
        let mut planned = self.planned.iter_mut();
        let Some(next) = planned.find(|planned| planned.operation == operation) else {
            return Ok(true);
        };
        if next.skip > 0 {
            next.skip -= 1;
            return Ok(true);
        }
        next.times -= 1;
        match next.outcome {
            Outcome::Fails(errno) => Err(io::Error::from_raw_os_error(errno)),
            Outcome::Lies => Ok(false),
        }
    }

    fn used(&self) -> u64 {
        self.names
            .values()
            .map(|node| lock(node).now.len() as u64)
            .sum()
    }

    fn rename(&mut self, change: impl FnOnce(&mut Names)) {
        self.history.push(self.names.clone());
        change(&mut self.names);
    }

    /// Writes at a random position of a random file.
    fn write_elsewhere(&mut self, bytes: &[u8]) {
        self.harmed += 1;
        let at = self.random.below(self.names.len() as u64) as usize;
        if let Some(node) = self.names.values().nth(at).cloned() {
            let mut content = lock(&node);
            let at = self.random.below(content.now.len() as u64 + 1);
            content.write(at, bytes);
        }
    }
}

/// A memory disk, mounted on a directory of this process until it is unmounted.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    dir: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

impl MemoryDisk {
    /// An empty disk; the seed determines what a crash leaves.
    pub fn mount(dir: &Path, seed: u64) -> Self {
        let disk = Self {
            dir: dir.into(),
            inner: Arc::new(Mutex::new(Inner {
                names: Names::new(),
                history: Vec::new(),
                planned: Vec::new(),
                random: Random(seed),
                life: 0,
                left: None,
                capacity: u64::MAX,
                cold_per_mille: 0,
                rot_per_mille: 0,
                names_claimed: false,
                harmed: 0,
                operations: 0,
            })),
        };
        let mut mounts = MOUNTS.write().unwrap_or_else(PoisonError::into_inner);
        mounts.push((dir.into(), disk.clone()));
        COUNT.store(mounts.len(), Ordering::Release);
        disk
    }

    /// Returns the directory to the operating system.
    pub fn unmount(&self) {
        let mut mounts = MOUNTS.write().unwrap_or_else(PoisonError::into_inner);
        mounts.retain(|(_, disk)| !Arc::ptr_eq(&disk.inner, &self.inner));
        COUNT.store(mounts.len(), Ordering::Release);
    }

    /// Makes an operation fail `times` times with `errno`, after `skip` successes.
    pub fn fail(&self, operation: Operation, errno: i32, skip: u64, times: u64) {
        let outcome = Outcome::Fails(errno);
        self.plan(operation, outcome, skip, times);
    }

    /// Makes syncs report success without effect `times` times, after `skip` real ones.
    pub fn lie(&self, skip: u64, times: u64) {
        self.plan(Operation::Sync, Outcome::Lies, skip, times);
    }

    /// Makes writes report success but go to another position `times` times, after `skip` correct ones.
    pub fn misdirect(&self, skip: u64, times: u64) {
        self.plan(Operation::Write, Outcome::Lies, skip, times);
    }

    fn plan(&self, operation: Operation, outcome: Outcome, skip: u64, times: u64) {
        lock(&self.inner).planned.push(Planned {
            operation,
            outcome,
            skip,
            times,
        });
    }

    /// Cancels planned failures, including the end of the disk.
    pub fn heal(&self) {
        let mut inner = lock(&self.inner);
        inner.planned.clear();
        inner.capacity = u64::MAX;
        inner.left = inner.left.filter(|left| *left == 0);
    }

    /// Makes the disk disappear at the last of this many more changes, which may be done in part.
    pub fn end_after(&self, changes: u64) {
        lock(&self.inner).left = Some(changes);
    }

    /// Whether the disk is gone.
    pub fn is_gone(&self) -> bool {
        lock(&self.inner).left == Some(0)
    }

    /// Sets the capacity for all files together.
    pub fn set_capacity(&self, bytes: u64) {
        lock(&self.inner).capacity = bytes;
    }

    /// Sets how many of 1,000 reads would wait for the disk.
    pub fn set_cold(&self, per_mille: u64) {
        lock(&self.inner).cold_per_mille = per_mille;
    }

    /// Sets how many of 1,000 unsynced writes that survive a crash have a flipped bit.
    pub fn set_rot(&self, per_mille: u64) {
        lock(&self.inner).rot_per_mille = per_mille;
    }

    /// How often the disk lost content that it had reported as durable.
    pub fn harmed(&self) -> u64 {
        lock(&self.inner).harmed
    }

    /// Total bytes of all files.
    pub fn used(&self) -> u64 {
        lock(&self.inner).used()
    }

    /// The number of operations so far.
    pub fn operations(&self) -> u64 {
        lock(&self.inner).operations
    }

    /// Simulates a power failure. Open files become invalid.
    pub fn crash(&self) {
        let mut inner = lock(&self.inner);
        let mut history = std::mem::take(&mut inner.history);
        history.push(inner.names.clone());
        let kept = inner.random.below(history.len() as u64) as usize;
        let claimed = std::mem::take(&mut inner.names_claimed) && kept + 1 < history.len();
        inner.harmed += u64::from(claimed);
        inner.names = history.swap_remove(kept);
        let nodes: Vec<Node> = inner.names.values().cloned().collect();
        let rot = inner.rot_per_mille;
        for node in nodes {
            // a copy, as old handles may still write to the file
            let claimed = lock(&node).crash(&mut inner.random, rot);
            inner.harmed += u64::from(claimed);
        }
        drop(inner);
        self.restart();
    }

    /// Ends the process that used the disk, whose content stays: open files become invalid.
    pub fn restart(&self) {
        let mut inner = lock(&self.inner);
        inner.life += 1;
        inner.left = None;
        inner.planned.clear();
        inner.capacity = u64::MAX;
    }

    pub(crate) fn open(&self, path: &Path, access: Access) -> io::Result<Handle> {
        let mut inner = lock(&self.inner);
        inner.allow(Operation::Open)?;
        let node = match (inner.names.get(path), access) {
            (Some(node), _) => Arc::clone(node),
            (None, Access::Create) => {
                let node = Node::default();
                inner.rename(|names| {
                    names.insert(path.into(), Arc::clone(&node));
                });
                node
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        let handle = Handle {
            disk: self.clone(),
            node,
            life: inner.life,
            position: Mutex::new(0),
        };
        drop(inner);
        if access == Access::Create && handle.len()? > 0 {
            handle.set_len(0)?;
        }
        Ok(handle)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        inner.allow(Operation::Rename)?;
        let node = inner.names.get(from).cloned();
        let node = node.ok_or(io::ErrorKind::NotFound)?;
        inner.rename(|names| {
            names.remove(from);
            names.insert(to.into(), node);
        });
        Ok(())
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        inner.allow(Operation::Rename)?;
        if !inner.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        inner.rename(|names| {
            names.remove(path);
        });
        Ok(())
    }

    pub(crate) fn list(&self) -> io::Result<Vec<PathBuf>> {
        let mut inner = lock(&self.inner);
        inner.allow(Operation::Read)?;
        debug_assert!(inner.names.keys().all(|path| path.starts_with(&self.dir)));
        Ok(inner.names.keys().cloned().collect())
    }

    pub(crate) fn sync_names(&self) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        let happens = inner.allow(Operation::Sync)?;
        if happens {
            inner.history.clear();
        }
        inner.names_claimed = !happens && !inner.history.is_empty();
        Ok(())
    }
}

/// An open file of a memory disk.
#[derive(Debug)]
pub(crate) struct Handle {
    disk: MemoryDisk,
    node: Node,
    life: u64,
    position: Mutex<u64>,
}

impl Handle {
    fn allow(&self, operation: Operation) -> io::Result<(MutexGuard<'_, Inner>, bool)> {
        let mut inner = lock(&self.disk.inner);
        if inner.life != self.life {
            return Err(dead());
        }
        let happens = inner.allow(operation)?;
        Ok((inner, happens))
    }

    #[allow(clippy::unnecessary_wraps, reason = "as the operating system's")]
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.node).now.len() as u64)
    }

    pub(crate) fn set_len(&self, size: u64) -> io::Result<()> {
        drop(self.allow(Operation::Write)?);
        lock(&self.node).set_len(size);
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.allow(Operation::Sync)?.1 {
            lock(&self.node).sync();
        } else {
            lock(&self.node).claim();
        }
        Ok(())
    }

    pub(crate) fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        drop(self.allow(Operation::Read)?);
        let content = lock(&self.node);
        let found = content.now.get(at as usize..at as usize + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    /// As `read_exact_at`, but sometimes as if part of the file were not in the page cache.
    pub(crate) fn read_cached(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        let mut inner = lock(&self.disk.inner);
        let cold = inner.cold_per_mille;
        if cold > 0 && inner.random.below(1000) < cold {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        drop(inner);
        self.read_exact_at(out, at)
    }

    pub(crate) fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        let was_gone = self.disk.is_gone();
        let (mut inner, room) = match self.allow(Operation::Write) {
            Ok((mut inner, false)) => {
                inner.write_elsewhere(bytes);
                return Ok(bytes.len());
            }
            Ok((inner, true)) => {
                let room = inner.capacity;
                (inner, room)
            }
            Err(error) => {
                // a failed write may still be done in part
                let mut inner = lock(&self.disk.inner);
                if inner.life == self.life && !was_gone {
                    let kept = inner.random.below(bytes.len() as u64 + 1) as usize;
                    lock(&self.node).write(at, &bytes[..kept]);
                }
                return Err(error);
            }
        };
        let mut kept = bytes.len();
        if room < u64::MAX {
            let left = room.saturating_sub(inner.used());
            kept = kept.min(left as usize);
            if kept == 0 && !bytes.is_empty() {
                inner.operations += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        lock(&self.node).write(at, &bytes[..kept]);
        Ok(kept)
    }

    pub(crate) fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        drop(self.allow(Operation::Read)?);
        let mut position = lock(&self.position);
        let content = lock(&self.node);
        let left = content.now.get(*position as usize..).unwrap_or_default();
        let size = left.len().min(out.len());
        out[..size].copy_from_slice(&left[..size]);
        *position += size as u64;
        Ok(size)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut position = lock(&self.position);
        let size = self.write_at(bytes, *position)?;
        *position += size as u64;
        Ok(size)
    }

    pub(crate) fn seek(&self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(to) = to else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        *lock(&self.position) = to;
        Ok(to)
    }
}
