//! Segments whose batches lie only in the bucket: their files hold the index alone, and reads fetch pieces.
//!
//! Such a file is as long as the segment. It begins with a header that no segment has, then comes a hole, then the
//! index. It is never changed: the pieces that were fetched lie in files without names, which end with the process.

mod head;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::{self, IoSlice},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use sharecore_bucket::{
    Answer, Manifest, Segment, What,
    mistakes::{Mistake, planted},
    names,
};

use crate::{
    disk::Source,
    files::{self, File},
    segment::Kind,
};

use head::{Head, write};
pub(crate) use head::{fits, write_fetched};

/// The most a reader fetches at once, unless the parts of the segment are no multiple of it.
const PIECE: u64 = 1 << 20;
/// Where pieces go; the file loses its name at once.
const NAME: &str = "bucket.pieces";
/// A file that takes the place of a segment, while it is written.
const NEW: &str = "bucket.hollow";
/// How often a read asks before it fails: the client retries.
const ATTEMPTS: u32 = 2;
/// This part of the bound is for pieces, the rest for whole segments.
const PIECES_SHARE: u64 = 4;
/// Files of pieces that stay open: scattered reads must not use up the descriptors that connections need.
const FILES_MAX: usize = 64;

/// Sends a request to the bucket and waits for its answer, on any thread.
#[derive(Clone)]
pub struct Asking(pub Arc<dyn Fn(What) -> Answer + Send + Sync>);

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asking")
    }
}

/// How much of a home stays on the local disk.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// Bytes of sealed segments, and of pieces of others.
    pub bytes: u64,
    /// Asks the bucket for pieces.
    pub ask: Asking,
}

/// What reads of segments in the bucket have done so far, and what is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColdFigures {
    /// Bytes of sealed segments on the local disk, and of fetched pieces.
    pub local_bytes: u64,
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
    /// Reads that failed.
    pub failed: u64,
}

/// The stores with a bound, by directory: a file that is opened finds its bucket here.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Cold>>> = Mutex::new(BTreeMap::new());

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads of one store's segments in the bucket.
#[derive(Debug)]
pub(crate) struct Cold {
    dir: PathBuf,
    ask: Asking,
    /// Bytes of whole segments that stay, and of pieces.
    pub(crate) segment_bytes: u64,
    piece_bytes: u64,
    cache: Mutex<Cache>,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    read_micros: AtomicU64,
    failed: AtomicU64,
    evicted: AtomicU64,
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

impl Cold {
    /// Serve the files of a directory from now on.
    pub(crate) fn open(dir: &Path, options: &CacheOptions) -> Arc<Self> {
        let piece_bytes = options.bytes / PIECES_SHARE;
        let cold = Arc::new(Self {
            dir: dir.into(),
            ask: options.ask.clone(),
            segment_bytes: options.bytes - piece_bytes,
            piece_bytes,
            cache: Mutex::default(),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            read_micros: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        });
        let mut open = hold(&OPEN);
        open.retain(|_, cold| cold.strong_count() > 0);
        open.insert(dir.into(), Arc::downgrade(&cold));
        cold
    }

    /// The figures, without those of whole segments.
    pub(crate) fn figures(&self) -> ColdFigures {
        ColdFigures {
            local_bytes: hold(&self.cache).bytes,
            remote_bytes: 0,
            evicted: self.evicted.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            read_micros: self.read_micros.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Ask for an object or a part of it. The error names the object.
    fn get(&self, name: String, range: Option<std::ops::Range<u64>>) -> io::Result<Vec<u8>> {
        let what = What::Get { name, range };
        let mut attempt = 1;
        loop {
            let name = what.name();
            match (self.ask.0)(what.clone()) {
                Answer::Bytes(bytes) => return Ok(bytes),
                Answer::Absent => {
                    return Err(io::Error::other(format!("{name} is missing in the bucket")));
                }
                other if attempt == ATTEMPTS => {
                    let why = match other {
                        Answer::Unknown(why) => why,
                        other => format!("{other:?}"),
                    };
                    return Err(io::Error::other(format!("the bucket: get {name}: {why}")));
                }
                _ => attempt += 1,
            }
        }
    }

    /// Fetch a piece, and check it.
    fn fetch(&self, head: &Head, piece: u64) -> io::Result<Vec<u8>> {
        let began = Instant::now();
        let found = self.fetched(head, piece);
        let micros = began.elapsed().as_micros() as u64;
        self.read_micros.fetch_add(micros, Ordering::Relaxed);
        match &found {
            Ok(bytes) => {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.read_bytes
                    .fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            Err(_) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        found
    }

    fn fetched(&self, head: &Head, piece: u64) -> io::Result<Vec<u8>> {
        let from = piece * head.piece_bytes;
        let to = (from + head.piece_bytes).min(head.size);
        let part = from / head.part_bytes;
        let name = names::part(head.segment, part as u32);
        let begin = part * head.part_bytes;
        let bytes = self.get(name.clone(), Some(from - begin..to - begin))?;
        if bytes.len() as u64 != to - from || crc32c::crc32c(&bytes) != head.crcs[piece as usize] {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{name} in the bucket does not match its checksum"),
            ));
        }
        Ok(bytes)
    }

    /// The file that holds these pieces; with `Memory`, only if it has all of them.
    fn pieces(
        &self,
        head: &Head,
        wanted: std::ops::RangeInclusive<u64>,
        source: Source,
    ) -> io::Result<Arc<File>> {
        let mut known = {
            let mut cache = hold(&self.cache);
            cache.clock += 1;
            let clock = cache.clock;
            match cache.pieces.get_mut(&head.segment) {
                Some(pieces) => {
                    pieces.used = clock;
                    Some((Arc::clone(&pieces.file), pieces.there.clone()))
                }
                None => None,
            }
        };
        let has_all = |there: &BTreeSet<u64>| wanted.clone().all(|it| there.contains(&it));
        if let Some((file, there)) = &known
            && has_all(there)
        {
            return Ok(Arc::clone(file));
        }
        if source == Source::Memory {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        for piece in wanted {
            if known
                .as_ref()
                .is_some_and(|(_, there)| there.contains(&piece))
            {
                continue;
            }
            let bytes = self.fetch(head, piece)?;
            let file = match &known {
                Some((file, _)) => Arc::clone(file),
                None => Arc::new(self.create()?),
            };
            file.write_all_at(&mut [IoSlice::new(&bytes)], piece * head.piece_bytes)?;
            let (_, there) = known.get_or_insert_with(|| (Arc::clone(&file), BTreeSet::new()));
            there.insert(piece);
            self.keep(head.segment, &file, piece, bytes.len() as u64);
        }
        let (file, _) = known.expect("a range holds a piece");
        Ok(file)
    }

    fn create(&self) -> io::Result<File> {
        // nobody else creates the name meanwhile
        let _cache = hold(&self.cache);
        let path = self.dir.join(NAME);
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

    /// Replace a segment's file by its index, if the bucket has the file: same size, same checksums. Returns the name of
    /// the new file, which takes the place of the old one; None for a segment too small to be worth it.
    pub(crate) fn hollow(
        &self,
        path: &Path,
        segment: Segment,
        kept_from: u64,
    ) -> io::Result<Option<PathBuf>> {
        let name = names::manifest(segment);
        let manifest = if planted(Mistake::EvictedUnshipped) {
            Some(assumed(path, segment)?)
        } else {
            Manifest::decode(&self.get(name.clone(), None)?)
        };
        let differs = |what: &str| {
            let what = format!("{name} in the bucket {what}");
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let manifest = manifest.ok_or_else(|| differs("does not match its checksum"))?;
        let file = File::open(path)?;
        if file.len()? != manifest.size || manifest.id != segment.id {
            return Err(differs("is not of the local segment"));
        }
        if !fits(&manifest, kept_from) {
            return Ok(None);
        }
        let mut head = Head::new(segment, &manifest, kept_from);
        let mut part = vec![0; manifest.part_bytes.min(manifest.size) as usize];
        for (at, crc) in (0..manifest.size)
            .step_by(manifest.part_bytes as usize)
            .zip(&manifest.parts)
        {
            part.resize(manifest.part_bytes.min(manifest.size - at) as usize, 0);
            file.read_exact_at(&mut part, at)?;
            if crc32c::crc32c(&part) != *crc {
                return Err(differs("is not of the local segment"));
            }
            let pieces = part.chunks(head.piece_bytes as usize);
            head.crcs.extend(pieces.map(crc32c::crc32c));
        }
        let mut kept = vec![0; (manifest.size - kept_from) as usize];
        file.read_exact_at(&mut kept, kept_from)?;
        let new = self.dir.join(NEW);
        write(&new, &head, &kept)?;
        self.evicted.fetch_add(1, Ordering::Relaxed);
        Ok(Some(new))
    }
}

/// The manifest of a segment that may not be in the bucket, for a planted mistake.
fn assumed(path: &Path, segment: Segment) -> io::Result<Manifest> {
    let bytes = files::read(path)?;
    Ok(Manifest {
        id: segment.id,
        size: bytes.len() as u64,
        part_bytes: PIECE,
        parts: bytes.chunks(PIECE as usize).map(crc32c::crc32c).collect(),
    })
}

/// An open file of a segment whose batches lie in the bucket.
#[derive(Debug)]
pub(crate) struct Hollow {
    own: File,
    head: Head,
    cold: Option<Arc<Cold>>,
}

impl Hollow {
    /// A file that was opened, as it is to be read.
    pub(crate) fn around(own: File, path: &Path) -> io::Result<File> {
        let suffix = path.extension().and_then(|it| it.to_str());
        let is_segment =
            suffix == Some(Kind::Journal.suffix()) || suffix == Some(Kind::Compact.suffix());
        if !is_segment {
            return Ok(own);
        }
        let Some(head) = Head::read(&own, path)? else {
            return Ok(own);
        };
        let dir = path.parent().unwrap_or(Path::new(""));
        let cold = hold(&OPEN).get(dir).and_then(Weak::upgrade);
        Ok(File::Hollow(Box::new(Self { own, head, cold })))
    }

    pub(crate) fn own(&self) -> &File {
        &self.own
    }

    pub(crate) fn read(&self, source: Source, out: &mut [u8], at: u64) -> io::Result<()> {
        let end = at + out.len() as u64;
        if at >= self.head.kept_from || out.is_empty() {
            return source.read(&self.own, out, at);
        }
        if end > self.head.kept_from {
            let (head, tail) = out.split_at_mut((self.head.kept_from - at) as usize);
            self.read(source, head, at)?;
            return source.read(&self.own, tail, self.head.kept_from);
        }
        let cold = self.cold.as_ref().ok_or_else(elsewhere)?;
        let pieces = at / self.head.piece_bytes..=(end - 1) / self.head.piece_bytes;
        let file = cold.pieces(&self.head, pieces, source)?;
        source.read(&file, out, at)
    }
}

/// The error for reads of a file without its bucket.
pub(crate) fn elsewhere() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "the batches of this segment lie in the bucket alone (sharecore.bucket.cache.bytes)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_many_segments_keep_few_files_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let ask = Asking(Arc::new(|_| Answer::Bytes(vec![7; 10])));
        let options = CacheOptions {
            bytes: 1 << 30,
            ask,
        };
        let cold = Cold::open(dir.path(), &options);
        for id in 0..200 {
            let segment = Segment {
                id,
                epoch: 1,
                is_compact: false,
            };
            let head = Head {
                segment,
                size: 10,
                kept_from: 10,
                part_bytes: 10,
                piece_bytes: 10,
                crcs: vec![crc32c::crc32c(&[7; 10])],
            };
            for source in [Source::Disk, Source::Memory] {
                let file = cold.pieces(&head, 0..=0, source).expect("it is there");
                let mut bytes = [0; 10];
                file.read_exact_at(&mut bytes, 0).expect("it was written");
                assert_eq!(bytes, [7; 10]);
            }
        }
        let cache = hold(&cold.cache);
        assert_eq!(cache.pieces.len(), FILES_MAX);
        assert_eq!(cache.bytes, 10 * FILES_MAX as u64);
    }
}
