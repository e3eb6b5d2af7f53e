//! State of a copy shared by a store's threads: how far was committed, which files wait for the bucket, and its status.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use sharecore_bucket::Writer;

use super::{frames::Cursor, home, journal_end::JournalEnd, line::BucketLine, standby::FreePlace};
use crate::{
    checkpoint::{self, Since},
    evicted::{CacheOptions, EvictedSegments},
    files,
    journal::Journal,
    segment::SEGMENT_HEADER,
};

/// Settings of a store's copy; sizes in bytes, times in milliseconds.
#[derive(Debug, Clone)]
pub struct BackupOptions {
    /// The cluster: a bucket that holds another cluster's data is refused.
    pub cluster_id: String,
    /// The node ID, for humans who look at the bucket.
    pub node: i32,
    /// Random bytes, unique among all stores.
    pub writer: Writer,
    /// Release and listeners, for humans.
    pub about: Vec<u8>,
    /// How long a commit waits at most for others to be shipped with it.
    pub interval_ms: u64,
    /// How many bytes are shipped at once; a larger frame is shipped alone.
    pub object_bytes: usize,
    /// The most journal objects in progress.
    pub window: u32,
    /// Part size of sealed segments; parts are uploaded one at a time.
    pub part_bytes: u64,
    /// How far back restoring to a time must reach.
    pub history_ms: i64,
    /// Disk space for segment files that are kept only until they are uploaded. Beyond it they are removed, and the
    /// copy restarts.
    pub surplus_bytes: u64,
    /// The most objects per segment, which bounds how many a restore reads.
    pub objects_max: usize,
    /// How long closing the store waits at most for unshipped commits.
    pub close_ms: u64,
    /// With durability `bucket`: how long a write waits at most for others, while an object is in progress.
    pub linger_ms: u64,
    /// With durability `bucket`: the idle time before a heartbeat is written; 0 turns heartbeats off.
    pub beat_ms: u64,
    /// With durability `bucket`: how many journal objects may be created per second, over a minute. Beyond that, only
    /// objects of `object_bytes`.
    pub puts_per_second: u64,
    /// With durability `bucket`: the only place that may be claimed, see [`crate::Standby::claims_at`].
    pub claims_at: Option<FreePlace>,
    /// With durability `bucket`: where [`crate::prepare_home`] has found the end of the journal, if it has.
    pub restored: Option<JournalEnd>,
    /// With durability `bucket`: how much stays on the local disk; None for everything.
    pub cache: Option<CacheOptions>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self {
            cluster_id: String::new(),
            node: 0,
            writer: [0; 16],
            about: Vec::new(),
            interval_ms: 1000,
            object_bytes: 4 << 20,
            window: 4,
            part_bytes: 8 << 20,
            history_ms: 86_400_000,
            surplus_bytes: 8 << 30,
            objects_max: 4096,
            close_ms: 5000,
            linger_ms: 20,
            beat_ms: 2000,
            puts_per_second: 10,
            claims_at: None,
            restored: None,
            cache: None,
        }
    }
}

/// A monotonic clock that includes suspended time, in milliseconds.
pub(super) fn steady_ms() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(clock);
    (now.tv_sec * 1000 + now.tv_nsec / 1_000_000).cast_unsigned()
}

/// The state of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackupState {
    /// Reading the bucket to find where to continue.
    #[default]
    Attaching,
    /// Shipping commits.
    Leading,
    /// Another broker has claimed the prefix: shipping has ended.
    Fenced,
    /// The bucket holds something other than a copy of this directory: nothing is shipped.
    Refused,
}

/// The status of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackupStatus {
    /// The state.
    pub state: BackupState,
    /// Why it was fenced or refused, with what to do.
    pub stopped: Option<String>,
    /// Why the last attempt failed; None after a success.
    pub error: Option<String>,
    /// The writer's epoch; 0 before it writes.
    pub epoch: u32,
    /// All places of the journal below this one are in the bucket.
    pub place: u64,
    /// All frames below this one are in the bucket.
    pub frame: u64,
    /// All frames below this one are committed.
    pub committed: u64,
    /// Bytes committed and not known to be in the bucket.
    pub behind_bytes: u64,
    /// How long the oldest of them has waited, in milliseconds; 0 without any.
    pub behind_ms: u64,
    /// Journal objects shipped, and their bytes.
    pub objects: u64,
    /// See `objects`.
    pub bytes: u64,
    /// Sealed segments uploaded, and waiting.
    pub segments: u64,
    /// See `segments`.
    pub segments_waiting: u64,
    /// The place of the last checkpoint written; 0 for none.
    pub checkpoint_place: u64,
    /// Bytes of files kept only until they are uploaded.
    pub surplus_bytes: u64,
    /// Request counts, retries included.
    pub creates: u64,
    /// See `creates`.
    pub gets: u64,
    /// See `creates`.
    pub lists: u64,
    /// See `creates`.
    pub deletes: u64,
    /// Requests that failed, or whose outcome is unknown.
    pub failed: u64,
    /// Bytes of all create requests, retries included.
    pub sent_bytes: u64,
}

/// A checkpoint of the store at the start of a segment. The segments before it have their indexes; the last of these
/// was written when frame `frame` was the next to commit.
#[derive(Clone)]
pub(super) struct Sealed {
    pub(super) since: Since,
    pub(super) frame: u64,
    pub(super) checkpoint: Arc<Vec<u8>>,
}

/// A file that is not needed locally.
struct Held {
    id: u64,
    path: PathBuf,
    bytes: u64,
    /// The file became useless with a frame below this one.
    frame: u64,
}

#[derive(Default)]
struct Inner {
    tail: Cursor,
    /// Bytes committed since the worker last looked, and how many of them wake it.
    unseen_bytes: u64,
    wake_at: u64,
    /// Segments sealed since the worker last looked; only the newest checkpoint counts.
    sealed: Vec<u64>,
    newest: Option<Sealed>,
    held: Vec<Held>,
    held_bytes: u64,
    holds: bool,
    /// Held files were given up: the journal in the bucket cannot continue.
    is_broken: bool,
    status: BackupStatus,
    /// When the worker last reported it.
    reported: Option<Instant>,
    restored: Option<JournalEnd>,
}

/// State of a copy; see the module.
pub(crate) struct Backup {
    pub(crate) options: BackupOptions,
    /// Whether durability is `bucket`.
    pub(crate) is_home: bool,
    pub(super) dir: PathBuf,
    /// All frames below were in the directory when it was opened.
    pub(super) opened: u64,
    is_marked: AtomicBool,
    /// When the newest object known to be uploaded was sent.
    proven_ms: AtomicU64,
    pub(super) line: Arc<BucketLine>,
    inner: Mutex<Inner>,
    is_closing: AtomicBool,
    /// With a bound on the local disk.
    pub(crate) evicted: Option<Arc<EvictedSegments>>,
}

impl Backup {
    pub(crate) fn new(
        dir: &Path,
        mut options: BackupOptions,
        is_home: bool,
        journal: &Journal,
    ) -> Self {
        let tail = Cursor {
            segment: journal.segment,
            at: journal.position,
            frame: journal.next_frame,
        };
        let inner = Inner {
            tail,
            holds: true,
            wake_at: u64::MAX,
            // it is needed once, and may be large
            restored: options.restored.take(),
            ..Inner::default()
        };
        Self {
            options,
            is_home,
            dir: dir.into(),
            opened: tail.frame,
            is_marked: AtomicBool::new(home::is_home(dir)),
            proven_ms: AtomicU64::new(0),
            line: Arc::default(),
            inner: Mutex::new(inner),
            is_closing: AtomicBool::new(false),
            evicted: None,
        }
    }

    /// Keeps a bound.
    pub(crate) fn with(self, evicted: Option<Arc<EvictedSegments>>) -> Self {
        Self { evicted, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return where a restore has found the end of the journal, once.
    pub(super) fn take_restored(&self) -> Option<JournalEnd> {
        self.lock().restored.take()
    }

    /// Frames were committed up to here.
    pub(crate) fn committed(&self, segment: u64, at: u64, frame: u64, bytes: u64) {
        let mut inner = self.lock();
        inner.tail = Cursor { segment, at, frame };
        inner.unseen_bytes += bytes;
        self.wake(inner);
    }

    fn wake(&self, mut inner: MutexGuard<'_, Inner>) {
        if inner.unseen_bytes >= inner.wake_at {
            inner.wake_at = u64::MAX;
            drop(inner);
            self.line.wake();
        }
    }

    /// Wake the worker once this many bytes were committed since it last looked.
    pub(super) fn wake_at(&self, bytes: u64) {
        let mut inner = self.lock();
        inner.wake_at = bytes;
        self.wake(inner);
    }

    /// The journal continues in another segment.
    pub(crate) fn rotated(&self, segment: u64, frame: u64) {
        self.committed(segment, SEGMENT_HEADER, frame, 0);
        self.line.wake();
    }

    /// A segment has its index, and there is a checkpoint of the state after it.
    pub(crate) fn sealed(&self, segment: u64, checkpoint: &Arc<Vec<u8>>) {
        let Some((since, _)) = checkpoint::parts(checkpoint) else {
            return;
        };
        let mut inner = self.lock();
        inner.sealed.push(segment);
        inner.newest = Some(Sealed {
            since,
            frame: inner.tail.frame,
            checkpoint: Arc::clone(checkpoint),
        });
        drop(inner);
        self.line.wake();
    }

    /// Remove a file that no start needs any more, once the bucket does not need it either.
    pub(crate) fn discard(&self, id: u64, path: &Path) -> std::io::Result<()> {
        let mut inner = self.lock();
        if !inner.holds {
            return files::remove(path);
        }
        let bytes = files::File::open(path)?.len()?;
        let frame = inner.tail.frame;
        inner.held_bytes += bytes;
        let path = path.into();
        inner.held.push(Held {
            id,
            path,
            bytes,
            frame,
        });
        if inner.held_bytes > self.options.surplus_bytes {
            inner.is_broken = true;
            drop(inner);
            self.hold_no_more();
            self.line.wake();
        }
        Ok(())
    }

    /// Remove the held files, and stop holding files.
    pub(super) fn hold_no_more(&self) {
        self.lock().holds = false;
        self.release(u64::MAX, |_| false);
    }

    /// Remove the files made useless by frames below this one that are not to be uploaded.
    pub(super) fn release(&self, frame: u64, is_needed: impl Fn(u64) -> bool) {
        let mut inner = self.lock();
        if inner.held.is_empty() {
            return;
        }
        let goes = |held: &Held| held.frame <= frame && !is_needed(held.id);
        let held = std::mem::take(&mut inner.held);
        let (gone, stays): (Vec<_>, Vec<_>) = held.into_iter().partition(goes);
        inner.held = stays;
        for held in gone {
            inner.held_bytes -= held.bytes;
            // a leftover is harmless: the next start finds it
            let _ = files::remove(&held.path);
        }
    }

    /// From now on keep files until they are uploaded.
    pub(super) fn hold(&self) {
        let mut inner = self.lock();
        inner.holds = true;
        inner.is_broken = false;
    }

    /// A file that the bucket needed is gone.
    pub(super) fn break_off(&self) {
        self.lock().is_broken = true;
    }

    /// Whether files that the bucket needed were removed.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().is_broken
    }

    pub(super) fn tail(&self) -> Cursor {
        self.lock().tail
    }

    /// Return how far was committed, and how many bytes since the last call.
    pub(super) fn take_committed(&self) -> (Cursor, u64) {
        let mut inner = self.lock();
        (inner.tail, std::mem::take(&mut inner.unseen_bytes))
    }

    /// Return the segments sealed since the last call.
    pub(super) fn take_sealed(&self) -> Vec<u64> {
        std::mem::take(&mut self.lock().sealed)
    }

    /// Return the newest checkpoint since the store was opened.
    pub(super) fn newest(&self) -> Option<Sealed> {
        self.lock().newest.clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut BackupStatus)) {
        let mut inner = self.lock();
        change(&mut inner.status);
        inner.reported = Some(Instant::now());
    }

    pub(crate) fn status(&self) -> BackupStatus {
        let requests = self.line.requests();
        let inner = self.lock();
        let behind_bytes = inner.status.behind_bytes + inner.unseen_bytes;
        // the worker may have slept since
        let since = inner.reported.filter(|_| behind_bytes > 0);
        let asleep_ms = since.map_or(0, |at| at.elapsed().as_millis() as u64);
        BackupStatus {
            behind_bytes,
            behind_ms: inner.status.behind_ms + asleep_ms,
            committed: inner.tail.frame,
            surplus_bytes: inner.held_bytes,
            creates: requests.creates,
            gets: requests.gets,
            lists: requests.lists,
            deletes: requests.deletes,
            failed: requests.failed,
            sent_bytes: requests.bytes,
            ..inner.status.clone()
        }
    }

    pub(crate) fn line(&self) -> Arc<BucketLine> {
        Arc::clone(&self.line)
    }

    /// The object sent at this time, and all before it, are in the bucket.
    pub(super) fn proven(&self, ms: u64) {
        self.proven_ms.fetch_max(ms, Ordering::Relaxed);
    }

    /// Whether an object sent at most this long ago is known to be in the bucket: nobody can lead who waits longer
    /// before a claim.
    pub(super) fn is_proven(&self, now_ms: u64, lease_ms: u64) -> bool {
        let proven_ms = self.proven_ms.load(Ordering::Relaxed);
        proven_ms > 0 && now_ms <= proven_ms + lease_ms
    }

    /// Whether the directory is marked as one with durability `bucket`.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    pub(super) fn marked(&self) {
        self.is_marked.store(true, Ordering::Relaxed);
    }

    /// No more commits follow: the rest is shipped, then the thread ends.
    pub(crate) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.line.wake();
    }

    /// No more calls follow.
    pub(crate) fn end(&self) {
        self.line.close();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }
}
