//! Evicted segments: their batches are in the bucket, and the local file keeps little more than the index.
//!
//! Such a file is never changed. Readers fetch pieces from the bucket, into files without names, which end with the
//! process.

mod completing;
mod eviction;
mod file;
mod header;
mod requests;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, IoSlice},
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use sharecore_bucket::{Segment, names};

use crate::{
    disk::Source,
    files::{self, File},
};

pub(crate) use eviction::evict;
pub(crate) use file::EvictedFile;
use header::Header;
pub(crate) use header::write_fetched;
use requests::ATTEMPTS;
pub use requests::{EvictedRequests, Reply, Requests};

/// The size of a piece, unless the parts of the segment are no multiple of it.
const PIECE: u64 = 1 << 20;
/// A reader requests at most this much at once: pieces that it needs, and those after them if it reads on.
const WINDOW_BYTES: u64 = 4 << 20;
/// Where pieces go; the file loses its name at once.
const PIECES: &str = "bucket.pieces";
/// This part of the bound is for pieces, the rest for whole segments.
const PIECES_SHARE: u64 = 4;
/// Files of pieces that stay open: scattered reads must not use up the descriptors that connections need.
const FILES_MAX: usize = 64;

/// How much of a home stays on the local disk.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// Bytes of sealed segments, and of pieces of evicted ones.
    pub bytes: u64,
    /// The unit in which the file system leaves holes.
    pub page_bytes: u64,
    /// The bucket that has the evicted segments.
    pub requests: EvictedRequests,
}

/// What of a home is on the local disk, and what was read from the bucket so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvictedFigures {
    /// Bytes of sealed segments on the local disk, and of fetched pieces.
    pub local_bytes: u64,
    /// Part of them that never leaves: batches of logs that are read without waiting (`Store::keep_local`).
    pub internal_bytes: u64,
    /// Bytes of sealed segments that only the bucket has.
    pub remote_bytes: u64,
    /// Segments that were removed from the local disk.
    pub evicted: u64,
    /// Pieces fetched, their bytes, and the time that it took.
    pub reads: u64,
    /// See `reads`.
    pub read_bytes: u64,
    /// See `reads`.
    pub read_micros: u64,
    /// Pieces that could not be fetched.
    pub failed: u64,
    /// Failed attempts to evict a segment, or to rewrite an evicted one.
    pub work_failed: u64,
    /// Why the last attempt failed; None after one that did not.
    pub work_error: Option<String>,
}

/// The stores with a bound, by directory: a file that is opened finds its bucket here.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<EvictedSegments>>> = Mutex::new(BTreeMap::new());

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The evicted segments of one store.
#[derive(Debug)]
pub(crate) struct EvictedSegments {
    dir: PathBuf,
    requests: EvictedRequests,
    /// Bytes of whole segments that stay.
    pub(crate) segment_bytes: u64,
    /// Bytes of pieces that stay.
    piece_bytes: u64,
    page_bytes: u64,
    cache: Mutex<Cache>,
    is_closing: AtomicBool,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    read_micros: AtomicU64,
    failed: AtomicU64,
    evicted: AtomicU64,
    work_failed: AtomicU64,
    work_error: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Cache {
    clock: u64,
    bytes: u64,
    pieces: BTreeMap<Segment, Pieces>,
}

/// The pieces of a segment that are on the disk, and when they were last read.
#[derive(Debug)]
struct Pieces {
    used: u64,
    file: Arc<File>,
    there: BTreeSet<u64>,
    bytes: u64,
}

impl EvictedSegments {
    /// Serve the files of a directory from now on.
    pub(crate) fn open(dir: &Path, options: &CacheOptions) -> Arc<Self> {
        let piece_bytes = options.bytes / PIECES_SHARE;
        let opened = Arc::new(Self {
            dir: dir.into(),
            requests: options.requests.clone(),
            segment_bytes: options.bytes - piece_bytes,
            piece_bytes,
            page_bytes: options.page_bytes,
            cache: Mutex::default(),
            is_closing: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            read_micros: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            work_failed: AtomicU64::new(0),
            work_error: Mutex::default(),
        });
        let mut open = hold(&OPEN);
        open.retain(|_, it| it.strong_count() > 0);
        open.insert(dir.into(), Arc::downgrade(&opened));
        opened
    }

    /// Let threads that wait for the bucket end.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// The figures, without those of whole segments.
    pub(crate) fn figures(&self) -> EvictedFigures {
        EvictedFigures {
            local_bytes: hold(&self.cache).bytes,
            evicted: self.evicted.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            read_micros: self.read_micros.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            work_failed: self.work_failed.load(Ordering::Relaxed),
            work_error: hold(&self.work_error).clone(),
            ..EvictedFigures::default()
        }
    }

    /// Count a segment that was evicted.
    pub(crate) fn count_evicted(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// Note how an attempt to evict a segment, or to rewrite an evicted one, has ended.
    pub(crate) fn worked(&self, error: Option<String>) {
        if error.is_some() {
            self.work_failed.fetch_add(1, Ordering::Relaxed);
        }
        *hold(&self.work_error) = error;
    }

    /// Fetch pieces at the same time, and check them. Each is requested up to `attempts` times.
    fn fetch(&self, pieces: &[(&Header, u64)], attempts: u32) -> Vec<io::Result<Vec<u8>>> {
        let wanted = pieces.iter().map(|(header, piece)| {
            let Range {
                start: from,
                end: to,
            } = header.range_of(*piece);
            let part = from / header.part_bytes;
            let begin = part * header.part_bytes;
            let name = names::part(header.segment, part as u32);
            (name, Some(from - begin..to - begin))
        });
        let wanted: Vec<_> = wanted.collect();
        let found = self.get_all(&wanted, attempts).into_iter();
        let found = found.zip(pieces).zip(&wanted);
        let checked = found.map(|(((found, took), (header, piece)), (name, range))| {
            let length = range.as_ref().map_or(0, |it| it.end - it.start);
            let found = found.and_then(|bytes| {
                let crc = header.crcs[*piece as usize];
                if bytes.len() as u64 != length || crc32c::crc32c(&bytes) != crc {
                    let what = format!("{name} in the bucket does not match its checksum");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                Ok(bytes)
            });
            let micros = took.as_micros() as u64;
            self.read_micros.fetch_add(micros, Ordering::Relaxed);
            match &found {
                Ok(_) => {
                    self.reads.fetch_add(1, Ordering::Relaxed);
                    self.read_bytes.fetch_add(length, Ordering::Relaxed);
                }
                Err(_) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
            found
        });
        checked.collect()
    }

    /// Look at the pieces of a segment, which counts as reading them.
    fn with_pieces<T>(&self, segment: Segment, look: impl FnOnce(&Pieces) -> T) -> Option<T> {
        let mut cache = hold(&self.cache);
        cache.clock += 1;
        let clock = cache.clock;
        let pieces = cache.pieces.get_mut(&segment)?;
        pieces.used = clock;
        Some(look(pieces))
    }

    /// Whether all of these pieces are on the disk.
    fn has_all(&self, segment: Segment, mut wanted: RangeInclusive<u64>) -> bool {
        let there = |pieces: &Pieces| wanted.all(|it| pieces.there.contains(&it));
        self.with_pieces(segment, there).unwrap_or(false)
    }

    /// The file that holds these pieces; with `Memory`, only if it has all of them.
    fn pieces(
        &self,
        header: &Header,
        wanted: RangeInclusive<u64>,
        source: Source,
    ) -> io::Result<Arc<File>> {
        let window = (WINDOW_BYTES / header.piece_bytes).max(1);
        let last = header.size.div_ceil(header.piece_bytes);
        let look = |pieces: &Pieces| {
            let lacks = |it: &u64| !pieces.there.contains(it);
            let missing: Vec<u64> = wanted.clone().filter(lacks).collect();
            // a reader that has read the piece before will read those after it
            let first = *wanted.start();
            let is_reading_on = first > 0 && !lacks(&(first - 1)) || !lacks(&first);
            let room = window.saturating_sub(missing.len() as u64);
            let ahead = (*wanted.end() + 1..last).filter(lacks).take(room as usize);
            let ahead: Vec<u64> = ahead.take_while(|_| is_reading_on).collect();
            (Arc::clone(&pieces.file), missing, ahead)
        };
        let known = self.with_pieces(header.segment, look);
        if let Some((file, missing, _)) = known.as_ref()
            && missing.is_empty()
        {
            return Ok(Arc::clone(file));
        }
        if source != Source::Disk {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (file, missing) = match known {
            Some((file, mut missing, ahead)) => {
                if self.piece_bytes >= 2 * WINDOW_BYTES {
                    missing.extend(ahead);
                }
                (file, missing)
            }
            None => (Arc::new(self.create()?), wanted.clone().collect()),
        };
        for some in missing.chunks(window as usize) {
            let pieces: Vec<_> = some.iter().map(|piece| (header, *piece)).collect();
            for (piece, found) in some.iter().zip(self.fetch(&pieces, ATTEMPTS)) {
                let bytes = match found {
                    Ok(bytes) => bytes,
                    Err(_) if !wanted.contains(piece) => continue,
                    Err(error) => return Err(error),
                };
                file.write_all_at(&mut [IoSlice::new(&bytes)], piece * header.piece_bytes)?;
                self.keep(header.segment, &file, *piece, bytes.len() as u64);
            }
        }
        Ok(file)
    }

    fn create(&self) -> io::Result<File> {
        // nobody else creates the name meanwhile
        let _cache = hold(&self.cache);
        let path = self.dir.join(PIECES);
        let file = File::create(&path)?;
        files::remove(&path)?;
        Ok(file)
    }

    /// Count a piece that was written, and drop the pieces read longest ago beyond the bounds.
    fn keep(&self, segment: Segment, file: &Arc<File>, piece: u64, bytes: u64) {
        let mut cache = hold(&self.cache);
        let used = cache.clock;
        let pieces = cache.pieces.entry(segment).or_insert_with(|| Pieces {
            used,
            file: Arc::clone(file),
            there: BTreeSet::new(),
            bytes: 0,
        });
        // another reader has begun a file meanwhile, or this one was dropped: it stays with its reader
        if !Arc::ptr_eq(&pieces.file, file) || !pieces.there.insert(piece) {
            return;
        }
        pieces.bytes += bytes;
        cache.bytes += bytes;
        while cache.bytes > self.piece_bytes || cache.pieces.len() > FILES_MAX {
            let oldest = cache.pieces.iter().min_by_key(|(_, it)| it.used);
            let Some(oldest) = oldest.map(|(segment, _)| *segment) else {
                break;
            };
            let gone = cache.pieces.remove(&oldest);
            cache.bytes -= gone.map_or(0, |it| it.bytes);
        }
    }
}

/// The error for reads of a file without its bucket.
pub(crate) fn elsewhere() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "this segment was evicted: only the bucket has its batches (sharecore.bucket.cache.bytes)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sharecore_bucket::{Answer, What};

    #[test]
    fn a_reader_that_reads_on_finds_the_next_pieces_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let requests = EvictedRequests(Arc::new(move |sent: Requests| {
            for (what, reply) in sent {
                let What::Get { range, .. } = what else {
                    unreachable!("readers only read")
                };
                hold(&seen).push(range.expect("a piece").start / PIECE);
                // the last piece is missing
                let answer = match hold(&seen).last() {
                    Some(9) => Answer::Absent,
                    _ => Answer::Bytes(vec![7; PIECE as usize]),
                };
                reply(answer);
            }
        }));
        let options = CacheOptions {
            bytes: 1 << 30,
            page_bytes: 4096,
            requests,
        };
        let segments = EvictedSegments::open(dir.path(), &options);
        let header = Header {
            segment: Segment {
                id: 1,
                epoch: 1,
                is_compact: false,
            },
            size: 10 * PIECE,
            kept: Vec::new(),
            index_from: 10 * PIECE,
            part_bytes: 10 * PIECE,
            piece_bytes: PIECE,
            crcs: vec![crc32c::crc32c(&vec![7; PIECE as usize]); 10],
        };
        let read = |wanted| segments.pieces(&header, wanted, Source::Disk).map(drop);
        let asked = || std::mem::take(&mut *hold(&asked));
        read(1..=1).expect("it is there");
        assert_eq!(asked(), [1], "nothing shows that the reader reads on");
        read(1..=2).expect("it is there");
        assert_eq!(asked(), [2, 3, 4, 5]);
        read(3..=5).expect("it is there");
        assert_eq!(asked(), [] as [u64; 0]);
        read(6..=6).expect("it is there");
        assert_eq!(asked(), [6, 7, 8, 9]);
        read(8..=8).expect("the piece after it is another reader's trouble");
        let error = read(9..=9).expect_err("it is missing");
        assert!(
            error.to_string().contains("is missing in the bucket"),
            "{error}"
        );
        read(0..=0).expect("it is there");
        assert_eq!(asked(), [9, 0], "the others are there");
    }

    #[test]
    fn reads_of_many_segments_keep_few_files_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let requests = EvictedRequests(Arc::new(|sent: Requests| {
            for (_, reply) in sent {
                reply(Answer::Bytes(vec![7; 10]));
            }
        }));
        let options = CacheOptions {
            bytes: 1 << 30,
            page_bytes: 4096,
            requests,
        };
        let segments = EvictedSegments::open(dir.path(), &options);
        for id in 0..200 {
            let segment = Segment {
                id,
                epoch: 1,
                is_compact: false,
            };
            let header = Header {
                segment,
                size: 10,
                kept: Vec::new(),
                index_from: 10,
                part_bytes: 10,
                piece_bytes: 10,
                crcs: vec![crc32c::crc32c(&[7; 10])],
            };
            for source in [Source::Disk, Source::Memory] {
                let file = segments
                    .pieces(&header, 0..=0, source)
                    .expect("it is there");
                let mut bytes = [0; 10];
                file.read_exact_at(&mut bytes, 0).expect("it was written");
                assert_eq!(bytes, [7; 10]);
            }
        }
        let cache = hold(&segments.cache);
        assert_eq!(cache.pieces.len(), FILES_MAX);
        assert_eq!(cache.bytes, 10 * FILES_MAX as u64);
    }
}
