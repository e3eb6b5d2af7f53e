//! With durability `bucket` the directory is a cache: at startup it is synchronized with the bucket. Anything more in
//! the local journal was never acknowledged, and may contradict what another broker has written.

use std::{collections::BTreeSet, fs, io, path::Path, sync::Arc};

use sharecore_bucket::{
    Answer, Bucket, FOREIGN_HOME, What, home,
    mistakes::{Mistake, planted},
    names, read_home,
};

use super::{
    confirmed::Confirmed,
    journal_cache::JournalCache,
    local::{self, Local},
    own,
    restore::{ATTEMPTS, BucketError, Moment, Restored, Restoring, attempt},
};
use crate::{
    directory_lock::DirectoryLock,
    error::StoreError,
    files,
    options::{Durability, Options},
    segment,
};

/// Marks a directory whose contents are in the bucket.
const MARK: &str = "bucket.home";
/// Marks a directory that was empty, as its bucket was, and whose broker has confirmed nothing so far.
const BEGUN: &str = "bucket.begun";
/// Where the files of such a directory go at its next start; followed by a number.
const UNCONFIRMED: &str = "bucket.unconfirmed";
/// So many starts keep their files. What comes later is this program's own, of a broker that cannot get to lead.
const UNCONFIRMED_MAX: u32 = 8;
/// Where the bucket's state is assembled.
const FRESH: &str = "bucket.fresh";

/// How a home starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// Both the directory and the bucket are empty; with the bucket's cluster.
    Empty(String),
    /// The directory was not a home so far: its contents are shipped first.
    Local,
    /// The directory matches the bucket.
    Bucket(Restored),
}

/// Synchronize a directory with the bucket, so that it can be opened with [`Durability::Bucket`]. Anything that the
/// bucket lacks is dropped, unless the directory has served without it. If neither has a cluster, it is `proposed`. On an
/// error the data are unchanged, as they are if the bucket belongs to another cluster than `cluster_id`, if known; what
/// was never confirmed may have been put aside. A `journal` of objects that were read before saves reading them. For a
/// store that `is_bounded` ([`crate::CacheOptions`]) only the indexes of segments that it lacks are fetched.
pub fn prepare_home(
    bucket: &mut dyn Bucket,
    dir: &Path,
    (cluster_id, proposed): (Option<&str>, &str),
    journal: Option<&JournalCache>,
    is_bounded: bool,
    progress: &mut dyn FnMut(&Restoring),
) -> Result<Prepared, BucketError> {
    let _lock = DirectoryLock::create(dir)?;
    let is_home = is_home(dir);
    let mut cluster_id = cluster_id;
    if !is_home && is_begun(dir) {
        // another broker may have claimed the bucket first; nothing of this was ever confirmed
        put_aside(dir)?;
        cluster_id = None;
    }
    let has_data = !files_of(dir)?.is_empty();
    if has_data && (!is_home || planted(Mistake::TailTrusted)) {
        return Ok(Prepared::Local);
    }
    let mut local = if is_home {
        local::read(dir)?
    } else {
        Local::new()
    };
    if !is_bounded {
        // without a bound nothing reads the bucket later
        local.retain(|segment, _| {
            let opened = files::File::open(&local::path(dir, *segment));
            !matches!(opened, Ok(files::File::Evicted(_)))
        });
    }
    let confirmed = Confirmed::read(dir).filter(|_| is_home);
    let fresh = dir.join(FRESH);
    // once: the standby's looks fill the cache again meanwhile
    let mut may_clear = true;
    for n in 1.. {
        clear(&fresh)?;
        fs::create_dir(&fresh).map_err(StoreError::io(&fresh))?;
        let known = (Some((dir, &local)), journal);
        let tried = attempt(bucket, &fresh, Moment::Latest, known, is_bounded, progress);
        match tried.result {
            Ok(restored) => {
                if let Err(error) = check_cluster(&restored.cluster_id, cluster_id) {
                    clear(&fresh)?;
                    return Err(error);
                }
                if let Some(confirmed) = confirmed
                    && let Err(error) = confirmed.check(bucket, &restored)
                {
                    clear(&fresh)?;
                    return Err(error);
                }
                install(dir, &fresh, &tried.segments)?;
                let end = restored.end.as_ref();
                if let Some(newest) = end.and_then(|end| Confirmed::restored(&end.copied)) {
                    newest.write(dir);
                }
                return Ok(Prepared::Bucket(restored));
            }
            Err(_) if tried.is_stale && n < ATTEMPTS => {}
            // the bucket may have it whole, and the disk may have room without what was read
            Err(BucketError::Damaged(_) | BucketError::Disk(_))
                if may_clear && journal.is_some_and(|it| !it.is_empty()) =>
            {
                may_clear = false;
                journal.inspect(|it| it.clear());
            }
            Err(BucketError::Nothing(_)) if !is_home => {
                let writers = own::read(&fresh)?;
                clear(&fresh)?;
                let found = agree(bucket, cluster_id.unwrap_or(proposed))?;
                begin(dir)?;
                // its claimer has written nothing
                if !writers.is_empty() {
                    own::write(dir, &writers)?;
                }
                return Ok(Prepared::Empty(found));
            }
            Err(error) => {
                clear(&fresh)?;
                return Err(error);
            }
        }
    }
    unreachable!("the last attempt has returned")
}

/// Whether a directory has data that are not known to be in a bucket. A standby cannot use it: taking over never deletes
/// them. Fails if another process uses the directory, or it cannot be written.
pub fn has_own_data(dir: &Path) -> Result<bool, StoreError> {
    let _lock = DirectoryLock::create(dir)?;
    Ok(!is_home(dir) && !is_begun(dir) && !files_of(dir)?.is_empty())
}

/// Refuse to open a directory with other durability than it was written with.
pub(crate) fn check(dir: &Path, options: &Options) -> Result<(), StoreError> {
    let what = match options.durability {
        Durability::Bucket if options.bucket.is_none() => "durability bucket needs a bucket",
        Durability::Fsync | Durability::Os if is_home(dir) => {
            "the directory is the cache of a home in a bucket, and may lack confirmed writes. Serve it with durability `bucket`, or restore the bucket to a new directory"
        }
        Durability::Fsync | Durability::Os => return end_begun(dir),
        Durability::Bucket => return Ok(()),
    };
    Err(StoreError::io(dir)(io::Error::new(
        io::ErrorKind::InvalidInput,
        what,
    )))
}

/// Whether the directory's contents are in the bucket, and later writes count only once uploaded.
pub(super) fn is_home(dir: &Path) -> bool {
    files::File::open(&dir.join(MARK)).is_ok()
}

/// Agree with other brokers that begin now on whose home the bucket is: the first to name a cluster decides.
fn agree(bucket: &mut dyn Bucket, cluster_id: &str) -> Result<String, BucketError> {
    let name = names::FORMAT;
    let create = What::Create {
        name: name.into(),
        body: Arc::new(home(cluster_id)),
    };
    let read = What::Get {
        name: name.into(),
        range: None,
    };
    let mut found = bucket.ask(read.clone());
    if found == Answer::Absent {
        // whatever the answer, the name is read again
        let created = bucket.ask(create);
        found = bucket.ask(read);
        if let (Answer::Absent, Answer::Unknown(why)) = (&found, created) {
            return Err(BucketError::Unreachable(format!("create {name}: {why}")));
        }
    }
    match found {
        Answer::Bytes(bytes) => read_home(&bytes)
            .ok_or_else(|| BucketError::Damaged(format!("{FOREIGN_HOME}. Use another prefix"))),
        Answer::Unknown(why) => Err(BucketError::Unreachable(format!("get {name}: {why}"))),
        other => Err(BucketError::Unreachable(format!("get {name}: {other:?}"))),
    }
}

fn check_cluster(found: &str, own: Option<&str>) -> Result<(), BucketError> {
    if own.is_none_or(|own| own == found) {
        return Ok(());
    }
    Err(BucketError::Damaged(format!(
        "it is the home of cluster {found}, and the directory is of another. Use another prefix"
    )))
}

/// Move the files of a directory whose broker never confirmed anything: somebody may have put others there.
fn put_aside(dir: &Path) -> Result<(), StoreError> {
    let paths = files_of(dir)?;
    if paths.is_empty() {
        return Ok(());
    }
    let mut asides = (1..=UNCONFIRMED_MAX).map(|n| dir.join(format!("{UNCONFIRMED}.{n}")));
    let Some(aside) = asides.find(|aside| !aside.exists()) else {
        for path in paths {
            files::remove(&path).map_err(StoreError::io(&path))?;
        }
        return Ok(());
    };
    fs::create_dir(&aside).map_err(StoreError::io(&aside))?;
    for path in paths {
        if let Some(name) = path.file_name() {
            files::rename(&path, &aside.join(name)).map_err(StoreError::io(&path))?;
        }
    }
    segment::sync_dir(&aside)?;
    segment::sync_dir(dir)
}

/// Whether nothing that the directory holds was confirmed.
fn is_begun(dir: &Path) -> bool {
    files::File::open(&dir.join(BEGUN)).is_ok()
}

/// What the directory will hold is not confirmed before it is marked as a home.
fn begin(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(BEGUN);
    fs::write(&path, b"").map_err(StoreError::io(&path))?;
    segment::sync_dir(dir)
}

/// From now on what the directory holds counts.
fn end_begun(dir: &Path) -> Result<(), StoreError> {
    if !is_begun(dir) {
        return Ok(());
    }
    let path = dir.join(BEGUN);
    files::remove(&path).map_err(StoreError::io(&path))?;
    segment::sync_dir(dir)
}

/// From now on the bucket is authoritative for the directory.
pub(super) fn mark(dir: &Path) -> Result<(), StoreError> {
    files::replace(
        &dir.join(MARK),
        &dir.join("bucket.new"),
        b"sharecore-home=1\n",
    )
    .map_err(StoreError::io(dir))?;
    segment::sync_dir(dir)?;
    // both marks mean a home
    end_begun(dir)
}

/// Replace the directory's contents with those of `fresh`, except for common segments.
fn install(dir: &Path, fresh: &Path, segments: &Local) -> Result<(), BucketError> {
    // after a crash from here on, the next start repeats this
    mark(dir)?;
    let stays: BTreeSet<_> = segments.keys().map(|it| local::path(dir, *it)).collect();
    for path in files_of(dir)?.into_iter().filter(|it| !stays.contains(it)) {
        files::remove(&path).map_err(StoreError::io(&path))?;
    }
    for path in files::list(fresh).map_err(StoreError::io(fresh))? {
        if let Some(name) = path.file_name() {
            files::rename(&path, &dir.join(name)).map_err(StoreError::io(&path))?;
        }
    }
    local::write(dir, segments)?;
    segment::sync_dir(dir)?;
    Ok(clear(fresh)?)
}

fn clear(fresh: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(fresh)(error)),
        _ => Ok(()),
    }
}

/// The data files of a directory.
fn files_of(dir: &Path) -> Result<Vec<std::path::PathBuf>, StoreError> {
    let is_data = |path: &std::path::PathBuf| {
        let suffix = path.extension().and_then(|it| it.to_str());
        matches!(suffix, Some("journal" | "compact" | "checkpoint"))
    };
    let found = files::list(dir).map_err(StoreError::io(dir))?;
    Ok(found.into_iter().filter(is_data).collect())
}
