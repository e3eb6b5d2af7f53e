//! Builds a new store from the intact parts of a damaged one.

use std::{
    collections::hash_map::{Entry as Slot, HashMap},
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::{
    LogId, batch,
    checkpoint::{self, Since},
    directory_lock::DirectoryLock,
    entries::{Entries, Entry},
    error::StoreError,
    format, index,
    segment::{self, Kind, SEGMENT_HEADER},
    segments::Segments,
    survey::{Batch, Findings, Progress, Survey},
};

/// Approximate size of the new store's files.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes between two progress reports.
const REPORT_BYTES: u64 = 4 << 20;
/// The most open files of the old store.
const FILES_MAX: usize = 64;

/// Copies the intact parts of `dir` to `to`, which must be missing or empty; `dir` is not changed.
///
/// The new store has the offsets, the catalog and the producers of the old one. `to` appears only when it is complete.
pub fn salvage(dir: &Path, to: &Path, progress: Progress<'_>) -> Result<Findings, StoreError> {
    let _lock = DirectoryLock::existing(dir)?;
    refuse_full(to)?;
    // reading is half of the progress, writing the other half
    let mut size = 0;
    let found = Survey::run(dir, &mut |done, total| {
        size = total;
        progress(done, 2 * total);
    })?;
    let new = beside(to);
    if new.exists() {
        fs::remove_dir_all(&new).map_err(StoreError::io(&new))?;
    }
    fs::create_dir_all(&new).map_err(StoreError::io(&new))?;
    let findings = found.findings();
    let total = findings
        .kept
        .iter()
        .map(|kept| kept.bytes)
        .sum::<u64>()
        .max(1);
    let (mut written, mut reported) = (0, 0);
    let made = write(found, &new, &mut |bytes| {
        written += bytes;
        if written - reported < REPORT_BYTES {
            return;
        }
        reported = written;
        progress(size + size * written / total.max(written), 2 * size);
    });
    if let Err(error) = made.and_then(|()| put_in_place(&new, to)) {
        let _ = fs::remove_dir_all(&new);
        return Err(error);
    }
    Ok(findings)
}

fn refuse_full(to: &Path) -> Result<(), StoreError> {
    let full = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(StoreError::io(to)(error)),
    };
    if full {
        let what = io::Error::new(
            io::ErrorKind::AlreadyExists,
            "is not empty; use a new directory",
        );
        return Err(StoreError::io(to)(what));
    }
    Ok(())
}

/// Where the new store is built: a crash leaves nothing under the requested name.
fn beside(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_os_string();
    name.push(".unfinished");
    to.with_file_name(name)
}

fn put_in_place(new: &Path, to: &Path) -> Result<(), StoreError> {
    if to.exists() {
        fs::remove_dir(to).map_err(StoreError::io(to))?;
    }
    fs::rename(new, to).map_err(StoreError::io(to))?;
    match to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => segment::sync_dir(parent),
        None => segment::sync_dir(Path::new(".")),
    }
}

/// The segment of the new store being filled.
struct Filling {
    path: PathBuf,
    id: u64,
    out: BufWriter<File>,
    position: u64,
    logs: Vec<(LogId, Entries)>,
}

impl Filling {
    fn begin(dir: &Path, id: u64) -> Result<Self, StoreError> {
        let path = Kind::Compact.path(dir, id);
        let begin = || -> io::Result<BufWriter<File>> {
            let mut out = BufWriter::with_capacity(256 << 10, File::create(&path)?);
            out.write_all(&segment::header(id, 0))?;
            Ok(out)
        };
        let out = begin().map_err(StoreError::io(&path))?;
        Ok(Self {
            path,
            id,
            out,
            position: SEGMENT_HEADER,
            logs: Vec::new(),
        })
    }

    fn add(
        &mut self,
        log: LogId,
        base: i64,
        batch: &Batch,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.out
            .write_all(bytes)
            .map_err(StoreError::io(&self.path))?;
        let entry = Entry {
            base,
            max_timestamp: batch.max_timestamp,
            last_delta: (batch.last - base) as u32,
            at: self.position as u32,
            len: batch.len,
        };
        assert_eq!(bytes.len(), batch.len as usize, "the whole batch");
        assert!(u32::try_from(self.position).is_ok(), "too large a segment");
        self.position += u64::from(batch.len);
        match self.logs.last_mut() {
            Some((id, entries)) if *id == log => entries.push(&entry),
            _ => self.logs.push((log, [entry].into_iter().collect())),
        }
        Ok(())
    }

    /// Completes the file. Returns its ID and the bytes of its batches.
    fn end(mut self) -> Result<(u64, u64), StoreError> {
        let blocks = self.logs.iter().map(|(log, entries)| (*log, entries));
        let end = || -> io::Result<u64> {
            let blocks = index::write(&mut self.out, self.id, self.position, blocks)?;
            self.out.flush()?;
            self.out.get_ref().sync_data()?;
            Ok(blocks.iter().map(|block| block.bytes).sum())
        };
        let bytes = end().map_err(StoreError::io(&self.path))?;
        Ok((self.id, bytes))
    }
}

fn write(mut found: Survey, dir: &Path, report: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
    let mut segments = Segments::new(dir.into());
    let mut files: HashMap<(u64, Kind), File> = HashMap::new();
    let mut filling: Option<Filling> = None;
    let mut bytes = Vec::new();
    let mut ids: Vec<LogId> = found.state.logs.keys().copied().collect();
    ids.sort_unstable();
    for log in ids {
        for (base, part) in found.whole(log) {
            let source = (part.segment, part.kind);
            if files.len() >= FILES_MAX {
                files.clear();
            }
            let file = match files.entry(source) {
                Slot::Occupied(known) => known.into_mut(),
                Slot::Vacant(new) => {
                    let path = part.kind.path(&found.dir, part.segment);
                    new.insert(File::open(&path).map_err(StoreError::io(&path))?)
                }
            };
            bytes.resize(part.len as usize, 0);
            file.read_exact_at(&mut bytes, u64::from(part.at))
                .map_err(StoreError::io(&found.dir))?;
            // the checksum does not cover these fields; they come from the index or the frame
            batch::assign_offset(&mut bytes, base);
            let out = match &mut filling {
                Some(out) => out,
                None => filling.insert(Filling::begin(dir, segments.new_id())?),
            };
            out.add(log, base, part, &bytes)?;
            report(u64::from(part.len));
            if out.position >= SEGMENT_BYTES
                && let Some(full) = filling.take()
            {
                let (id, size) = full.end()?;
                segments.restore(id, Kind::Compact, size);
            }
        }
    }
    if let Some(last) = filling.take() {
        let (id, size) = last.end()?;
        segments.restore(id, Kind::Compact, size);
    }
    let since = Since {
        segment: segments.new_id(),
        frame: 1,
    };
    found.state.segments = segments;
    for log in found.state.logs.values_mut() {
        log.extents.clear();
        // holes from compaction stay known; replaced batches are not copied
        log.cleaned.since = 0;
    }
    format::write(dir)?;
    let bytes = checkpoint::encode(&found.state, None, since);
    checkpoint::save(dir, since.segment, &bytes)?;
    segment::create(dir, since.segment, since.frame, true).map(drop)
}
