//! A directory as a bucket: a mounted disk or file server.
//!
//! An object is created by linking a complete, synced file: `link` fails if the name exists, on file servers too.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use sharecore_bucket::{Answer, PAGE_MIN, What};

use crate::transport::Request;

/// How many requests run at once.
const THREADS: usize = 4;
const PAGE: usize = 1000;
const _: () = assert!(PAGE >= PAGE_MIN);
/// Name prefix of incomplete files.
const PART: &str = ".part-";

/// The threads that read and write a directory.
pub(crate) struct Directory {
    requests: Option<Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
}

impl Directory {
    pub(crate) fn start(root: &Path) -> Result<Self, String> {
        let (requests, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let objects = Arc::new(Objects {
            root: root.to_owned(),
            life: RandomState::new().hash_one(0),
            parts: AtomicU64::new(0),
        });
        let mut threads = Vec::new();
        for _ in 0..THREADS {
            let (queue, objects) = (queue.clone(), objects.clone());
            let thread = Builder::new()
                .name("sharecore-bucket".into())
                .spawn(move || serve(&queue, &objects))
                .map_err(|error| format!("cannot start a thread for the bucket: {error}"))?;
            threads.push(thread);
        }
        Ok(Self {
            requests: Some(requests),
            threads,
        })
    }

    /// Queue a request; return it if the threads have ended.
    pub(crate) fn send(&self, request: Request) -> Result<(), Request> {
        match &self.requests {
            Some(requests) => requests.send(request).map_err(|refused| refused.0),
            None => Err(request),
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.requests = None;
        for thread in self.threads.drain(..) {
            // a panic has already been printed
            let _ = thread.join();
        }
    }
}

fn serve(queue: &Mutex<Receiver<Request>>, objects: &Objects) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Request { call, done }) = next else {
            return;
        };
        done(call.id, objects.answer(call.what));
    }
}

struct Objects {
    root: PathBuf,
    /// Random, as two machines may write to one directory.
    life: u64,
    /// A counter that makes the names of partial files unique.
    parts: AtomicU64,
}

impl Objects {
    fn answer(&self, what: What) -> Answer {
        let action = format!("{} {}", what.kind(), self.root.join(what.name()).display());
        if !self.root.is_dir() {
            return Answer::Unknown(format!(
                "{action}: {} is not a directory. Mount it, or create it",
                self.root.display()
            ));
        }
        self.attempt(what)
            .unwrap_or_else(|error| Answer::Unknown(format!("{action}: {error}")))
    }

    fn attempt(&self, what: What) -> io::Result<Answer> {
        match what {
            What::Create { name, body } => {
                let path = self.path(&name)?;
                let part = self.write(&path, &body)?;
                let linked = fs::hard_link(&part, &path);
                fs::remove_file(&part)?;
                match linked {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Answer::Exists),
                    Err(error) => Err(error),
                    Ok(()) => sync_folder(&path).map(|()| Answer::Done),
                }
            }
            What::Put { name, body } => {
                let path = self.path(&name)?;
                fs::rename(self.write(&path, &body)?, &path)?;
                sync_folder(&path).map(|()| Answer::Done)
            }
            What::Get { name, range } => match read(&self.path(&name)?, range) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Answer::Absent),
                bytes => bytes.map(Answer::Bytes),
            },
            What::List { prefix, after } => {
                let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
                let mut found = BTreeMap::new();
                self.walk(folder, &mut found)?;
                let names = found.into_iter().filter(|(name, _)| {
                    name.starts_with(&prefix) && after.as_ref().is_none_or(|after| name > after)
                });
                Ok(Answer::Names(names.take(PAGE).collect()))
            }
            What::Delete { name } => match fs::remove_file(self.path(&name)?) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Answer::Done),
                deleted => deleted.map(|()| Answer::Done),
            },
        }
    }

    /// Write a complete file beside `path` and return its name.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        let number = self.parts.fetch_add(1, Ordering::Relaxed);
        let part = folder.join(format!("{PART}{:016x}-{number}", self.life));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        match written {
            Ok(()) => Ok(part),
            Err(error) => {
                fs::remove_file(&part)?;
                Err(error)
            }
        }
    }

    fn walk(&self, folder: &str, found: &mut BTreeMap<String, u64>) -> io::Result<()> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(file_name) = entry.file_name().into_string() else {
                continue;
            };
            let name = match folder {
                "" => file_name.clone(),
                _ => format!("{folder}/{file_name}"),
            };
            let about = match entry.metadata() {
                // deleted meanwhile
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                about => about?,
            };
            if about.is_dir() {
                self.walk(&name, found)?;
            } else if !file_name.starts_with(PART) {
                found.insert(name, about.len());
            }
        }
        Ok(())
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !name.split('/').all(is_part) {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "not a valid object name",
            ));
        }
        Ok(self.root.join(name))
    }
}

fn read(path: &Path, range: Option<Range<u64>>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    match range {
        None => file.read_to_end(&mut bytes)?,
        Some(range) => {
            file.seek(SeekFrom::Start(range.start))?;
            let length = range.end.saturating_sub(range.start);
            file.take(length).read_to_end(&mut bytes)?
        }
    };
    Ok(bytes)
}

/// Make a name durable: sync its folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use sharecore_bucket::{Answer, Bucket, What};
    use tempfile::tempdir;

    use crate::{Place, Transport};

    fn open(root: &std::path::Path) -> Transport {
        Transport::start(&Place::Directory(root.into()).into()).unwrap()
    }

    fn create(bucket: &mut Transport, name: &str, body: &[u8]) -> Answer {
        bucket.ask(What::Create {
            name: name.into(),
            body: body.to_vec().into(),
        })
    }

    fn get(bucket: &mut Transport, name: &str, range: Option<std::ops::Range<u64>>) -> Answer {
        bucket.ask(What::Get {
            name: name.into(),
            range,
        })
    }

    fn list(bucket: &mut Transport, prefix: &str, after: Option<&str>) -> Vec<String> {
        let listed = bucket.ask(What::List {
            prefix: prefix.into(),
            after: after.map(Into::into),
        });
        let Answer::Names(names) = listed else {
            panic!("{listed:?}")
        };
        names.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn objects_are_files() {
        let root = tempdir().unwrap();
        let mut bucket = open(root.path());
        assert_eq!(get(&mut bucket, "journal/1", None), Answer::Absent);
        assert_eq!(create(&mut bucket, "journal/1", b"123456"), Answer::Done);
        assert_eq!(create(&mut bucket, "journal/1", b"other"), Answer::Exists);
        assert_eq!(
            get(&mut bucket, "journal/1", None),
            Answer::Bytes(b"123456".into())
        );
        assert_eq!(
            get(&mut bucket, "journal/1", Some(2..4)),
            Answer::Bytes(b"34".into())
        );
        assert_eq!(
            get(&mut bucket, "journal/1", Some(4..99)),
            Answer::Bytes(b"56".into())
        );
        assert_eq!(
            get(&mut bucket, "journal/1", Some(9..99)),
            Answer::Bytes(vec![])
        );
        let written = bucket.ask(What::Put {
            name: "nodes/1".into(),
            body: b"a".to_vec().into(),
        });
        assert_eq!(written, Answer::Done);
        assert_eq!(create(&mut bucket, "journal/2", b""), Answer::Done);
        assert_eq!(create(&mut bucket, "format", b""), Answer::Done);
        assert_eq!(
            list(&mut bucket, "", None),
            ["format", "journal/1", "journal/2", "nodes/1"]
        );
        assert_eq!(
            list(&mut bucket, "journal/", Some("journal/1")),
            ["journal/2"]
        );
        assert_eq!(list(&mut bucket, "journal/2", None), ["journal/2"]);
        for _ in 0..2 {
            let deleted = bucket.ask(What::Delete {
                name: "journal/1".into(),
            });
            assert_eq!(deleted, Answer::Done);
        }
        assert_eq!(list(&mut bucket, "journal/", None), ["journal/2"]);
    }

    #[test]
    fn a_directory_that_is_not_there_is_not_made() {
        let root = tempdir().unwrap();
        let absent = root.path().join("mount");
        let mut bucket = open(&absent);
        for answer in [create(&mut bucket, "a", b""), get(&mut bucket, "a", None)] {
            let Answer::Unknown(why) = answer else {
                panic!("{answer:?}")
            };
            assert!(why.contains("Mount it, or create it"), "{why}");
        }
        assert!(!absent.exists());
    }

    #[test]
    fn a_name_does_not_leave_the_directory() {
        let root = tempdir().unwrap();
        let mut bucket = open(root.path());
        for name in ["../a", "/etc/passwd", "a//b", "a/../../b", ""] {
            assert!(
                matches!(get(&mut bucket, name, None), Answer::Unknown(_)),
                "{name}"
            );
        }
    }
}
