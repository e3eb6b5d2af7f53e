//! Reads a log's batches in order, and writes the remaining ones into new segments.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use sharecore_records::{Batch, Batches, Header};

use crate::{
    LogId,
    cleaner::{pace::Pace, section::Source},
    entries::{Entries, Entry},
    error::Refusal,
    files::{self, File},
    index::{self, Block},
    segment::{self, Kind, SEGMENT_HEADER},
    store::Shared,
};

/// Reads the batches of one source, in stretches: small gaps with other logs' batches are read along.
pub(crate) struct Reader<'a> {
    source: &'a Source,
    file: File,
    window: Vec<u8>,
    window_at: u64,
    stretch: usize,
}

/// Gaps of up to this many bytes are read rather than skipped.
const GAP_MAX: u32 = 32 << 10;

impl<'a> Reader<'a> {
    /// `stretch`: about how many bytes to read at a time.
    pub(crate) fn new(source: &'a Source, stretch: usize) -> Result<Self, Refusal> {
        Ok(Self {
            source,
            file: source.open()?,
            window: Vec::new(),
            window_at: 0,
            stretch,
        })
    }

    /// Reads the first of `entries`; those after it may be read along.
    pub(crate) fn batch(
        &mut self,
        entries: &[Entry],
        pace: &mut Pace<'_>,
    ) -> Result<Batch<'_>, Refusal> {
        assert!(!entries.is_empty(), "no batch is requested");
        let entry = entries[0];
        let from = u64::from(entry.at);
        let end = from + u64::from(entry.len);
        if from < self.window_at || end > self.window_at + self.window.len() as u64 {
            let size = self.reach(entries);
            self.window.resize(size, 0);
            let read = self.file.read_exact_at(&mut self.window, from);
            read.map_err(|error| self.source.unreadable(&error))?;
            self.window_at = from;
            pace.moved(size)?;
        }
        debug_assert!(
            self.window_at <= from && end <= self.window_at + self.window.len() as u64,
            "bytes that were not read"
        );
        let bytes = &self.window[(from - self.window_at) as usize..][..entry.len as usize];
        let batch = Batches::new(bytes).next().filter(|batch| {
            let header: &Header = &batch.header;
            header.size == bytes.len()
                && header.base_offset == entry.base
                && header.last_offset() == entry.last()
        });
        batch.ok_or_else(|| {
            let what = format!("the batch at offset {} is damaged on disk", entry.base);
            self.source.unreadable(&what)
        })
    }

    fn reads_along(&self, first: &Entry, further: u32) -> bool {
        let (from, end) = (u64::from(first.at), u64::from(first.at + first.len));
        self.file.reads_along(from, end, u64::from(further))
    }

    /// Bytes from the first entry to the end of the last one in the same stretch.
    fn reach(&self, entries: &[Entry]) -> usize {
        let first = &entries[0];
        let mut end = first.at + first.len;
        for entry in &entries[1..] {
            let reached = entry.at + entry.len;
            if entry.at < end
                || entry.at - end > GAP_MAX
                || (reached - first.at) as usize > self.stretch
                || !self.reads_along(first, reached)
            {
                break;
            }
            end = reached;
        }
        (end - first.at) as usize
    }
}

/// Segments under construction: files without effect until a frame of the journal names them.
pub(crate) struct Writer<'a> {
    shared: &'a Shared,
    dir: &'a Path,
    log: LogId,
    segment_bytes: u64,
    open: Option<Open>,
    pub(crate) written: Vec<(u64, Block)>,
    paths: Vec<PathBuf>,
    pub(crate) bytes: u64,
}

struct Open {
    id: u64,
    out: BufWriter<File>,
    position: u64,
    entries: Entries,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(shared: &'a Shared, dir: &'a Path, log: LogId, segment_bytes: u64) -> Self {
        Self {
            shared,
            dir,
            log,
            segment_bytes,
            open: None,
            written: Vec::new(),
            paths: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a batch.
    pub(crate) fn push(&mut self, bytes: &[u8], pace: &mut Pace<'_>) -> Result<(), Refusal> {
        let header = Header::read(bytes)
            .ok_or_else(|| Refusal::Storage("a batch was not written correctly".into()))?;
        let open = self.open.take();
        let mut open = match open {
            Some(open) if open.position < self.segment_bytes => open,
            full => {
                self.seal(full)?;
                self.begin()?
            }
        };
        debug_assert_eq!(header.size, bytes.len(), "a whole batch, and no more");
        assert!(u32::try_from(open.position).is_ok(), "too large a segment");
        let result = open.out.write_all(bytes);
        result.map_err(|error| self.failed(&error))?;
        open.entries
            .push(&Entry::new(&header, open.position as u32));
        open.position += bytes.len() as u64;
        self.open = Some(open);
        self.bytes += bytes.len() as u64;
        pace.moved(bytes.len())
    }

    /// Makes all of it durable.
    pub(crate) fn finish(&mut self) -> Result<(), Refusal> {
        let open = self.open.take();
        self.seal(open)?;
        debug_assert!(self.open.is_none(), "a segment is left open");
        debug_assert!(
            self.written.is_sorted_by(|(_, a), (_, b)| a.last < b.first),
            "segments are consecutive"
        );
        segment::sync_dir(self.dir).map_err(|error| Refusal::Storage(error.to_string()))
    }

    /// Hands the segments over to the store.
    pub(crate) fn keep(&mut self) {
        self.paths.clear();
    }

    fn begin(&mut self) -> Result<Open, Refusal> {
        let id = self.shared.lock().segments.new_id();
        let path = Kind::Compact.path(self.dir, id);
        self.paths.push(path.clone());
        let begin = || -> io::Result<Open> {
            let mut out = BufWriter::with_capacity(256 << 10, File::create(&path)?);
            out.write_all(&segment::header(id, 0))?;
            Ok(Open {
                id,
                out,
                position: SEGMENT_HEADER,
                entries: Entries::default(),
            })
        };
        begin().map_err(|error| self.failed(&error))
    }

    fn seal(&mut self, open: Option<Open>) -> Result<(), Refusal> {
        let Some(mut open) = open else {
            return Ok(());
        };
        let blocks = [(self.log, &open.entries)];
        let sealed = index::write(&mut open.out, open.id, open.position, blocks.into_iter())
            .and_then(|blocks| {
                let file = open
                    .out
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)?;
                file.sync_data()?;
                Ok(blocks)
            });
        let blocks = sealed.map_err(|error| self.failed(&error))?;
        self.written
            .extend(blocks.into_iter().map(|block| (open.id, block)));
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> Refusal {
        Refusal::Storage(format!("writing to {} failed: {error}", self.dir.display()))
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.open = None;
        for path in &self.paths {
            // a leftover is removed when the store is opened
            let _ = files::remove(path);
        }
    }
}
