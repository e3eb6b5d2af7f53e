//! Buckets for Python: URLs, probes, restores, homes and their standbys.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_bucket::inspect::inspect;
use sharecore_bucket::probe::{Outcome, Verdict};
use sharecore_bucket::{Bucket, HOME_WINDOW, Until, remove};
use sharecore_bucket_io::{HAS_CLOUDS, Place, Settings, Transport};
use sharecore_store::{
    BackupOptions, BucketError, FreePlace, JournalCache, JournalEnd, Led, Moment, Prepared,
    Restoring, Standby, restore,
};

use crate::{clock::monotonic_ms, copying::run_probe};

/// Name, outcome (`passed`, `wrong`, `unanswered`) and why.
type Checked = (&'static str, &'static str, String);
/// The checks, the verdict (`fit`, `grows`, `unfit`, `unknown`) and why.
type Probed = (Vec<Checked>, &'static str, String);

/// Cluster id; epoch, place and time of the newest object; leader's node, whether it is a home, whether it has released it; the
/// oldest time to restore; kind, objects and bytes; objects since a time.
type Inspected = (
    String,
    Option<(u32, u64, i64)>,
    Option<(i32, bool, bool)>,
    Option<i64>,
    Vec<(String, u64, u64)>,
    u64,
);

/// Return the URL in its canonical form; raise `ValueError` if it does not name a bucket.
#[pyfunction]
pub(crate) fn bucket_url(url: &str) -> PyResult<String> {
    let place = Place::parse(url).map_err(PyValueError::new_err)?;
    Ok(place.to_string())
}

/// True if this build supports S3, Google Cloud Storage and Azure.
#[pyfunction]
pub(crate) fn reaches_clouds() -> bool {
    HAS_CLOUDS
}

/// Probe whether a bucket is safe to use. `random` names the probe's objects; `ValueError`: wrong settings.
#[pyfunction]
#[pyo3(signature = (url, endpoint, region, allow_http, random))]
pub(crate) fn probe_bucket(
    py: Python<'_>,
    url: &str,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
    random: (u64, u64),
) -> PyResult<Probed> {
    let settings = settings(url, endpoint, region, allow_http)?;
    let random = u128::from(random.0) << 64 | u128::from(random.1);
    let probe = py.detach(|| run_probe(&Transport::start(&settings)?, random));
    let probe = probe.map_err(PyValueError::new_err)?;
    let checks = probe.checks().iter().map(|check| {
        let (outcome, why) = match &check.outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Wrong(why) => ("wrong", why.clone()),
            Outcome::Unanswered(why) => ("unanswered", why.clone()),
        };
        (check.name, outcome, why)
    });
    let checks = checks.collect();
    let (verdict, why) = match probe.verdict() {
        Verdict::Fit => ("fit", String::new()),
        Verdict::FitButGrows(why) => ("grows", why),
        Verdict::Unfit(why) => ("unfit", why),
        Verdict::Unknown(why) => ("unknown", why),
    };
    Ok((checks, verdict, why))
}

/// Return what a bucket holds. `ValueError`: wrong settings; `OSError`: it cannot be read, or holds no copy.
#[pyfunction]
pub(crate) fn inspect_bucket(
    py: Python<'_>,
    url: &str,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
    since_ms: i64,
) -> PyResult<Inspected> {
    let settings = settings(url, endpoint, region, allow_http)?;
    let mut transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
    let found = py.detach(|| inspect(&mut transport, since_ms));
    let found = found.map_err(|why| PyOSError::new_err(format!("{}: {why}", transport.url())))?;
    let amounts = found.amounts.into_iter();
    Ok((
        found.cluster_id,
        found.newest,
        found.leader.map(|leader| {
            (
                leader.node,
                leader.window == HOME_WINDOW,
                leader.is_released,
            )
        }),
        found.oldest_ms,
        amounts
            .map(|(kind, amount)| (kind, amount.objects, amount.bytes))
            .collect(),
        found.recent,
    ))
}

/// Delete all objects of a home or a copy, and return their number. `ValueError`: wrong settings; `OSError`: they could not
/// all be deleted, or it is another program's.
#[pyfunction]
pub(crate) fn remove_bucket(
    py: Python<'_>,
    url: &str,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
) -> PyResult<u64> {
    let settings = settings(url, endpoint, region, allow_http)?;
    let mut transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
    let removed = py.detach(|| remove(&mut transport));
    removed.map_err(|why| PyOSError::new_err(format!("{}: {why}", transport.url())))
}

/// Cluster id, place and time of the newest object, bytes read.
type Made = (String, u64, i64, u64);

/// Create a store from the copy in a bucket. Return what was created or None, whether the bucket is damaged or incomplete, and
/// the reason. `ValueError`: wrong settings.
#[pyfunction]
#[pyo3(signature = (url, path, progress, *, endpoint, region, allow_http, at_ms = None, place = None))]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
pub(crate) fn restore_bucket(
    py: Python<'_>,
    url: &str,
    path: PathBuf,
    progress: Py<PyAny>,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
    at_ms: Option<i64>,
    place: Option<u64>,
) -> PyResult<(Option<Made>, bool, String)> {
    let settings = settings(url, endpoint, region, allow_http)?;
    let mut transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
    let moment = match (at_ms, place) {
        (Some(ms), _) => Moment::At(ms),
        (None, Some(place)) => Moment::Place(place),
        (None, None) => Moment::Latest,
    };
    let (mut interrupted, is_over) = (None, AtomicBool::new(false));
    let made = py.detach(|| {
        let mut report = |read: &Restoring| {
            Python::attach(|py| {
                if interrupted.is_none() {
                    interrupted = progress.call1(py, (read.bytes, 0)).err();
                    is_over.store(interrupted.is_some(), Ordering::Relaxed);
                }
            });
        };
        let mut bucket = Until::new(&mut transport, &is_over);
        restore(&mut bucket, &path, moment, &mut report)
    });
    if let Some(error) = interrupted {
        return Err(error);
    }
    Ok(match made {
        Ok(made) => {
            let made = (made.cluster_id, made.place, made.ms, made.read.bytes);
            (Some(made), false, String::new())
        }
        Err(error) => {
            let is_damaged = matches!(error, BucketError::Damaged(_) | BucketError::Nothing(_));
            (None, is_damaged, format!("{}: {error}", transport.url()))
        }
    })
}

/// Make a data directory match its home in a bucket. Return the starting point: `empty` (both are empty), `local` (the
/// directory was not a home before) or `bucket`; the home's cluster id, unless `local`; the place and time of the newest object; and
/// the bytes read. Unless `is_tried`, the bucket is probed first. Objects that `standby` has read are not read again. If it
/// `is_bounded`, only the indexes of segments are fetched. `ValueError`: wrong settings; `OSError`: nothing was changed.
#[pyfunction]
#[pyo3(signature = (url, path, *, endpoint, region, allow_http, cluster_id, proposed, random, is_tried = false, standby = None, is_bounded = false))]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
pub(crate) fn prepare_home(
    py: Python<'_>,
    url: &str,
    path: PathBuf,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
    cluster_id: Option<String>,
    proposed: String,
    random: (u64, u64),
    is_tried: bool,
    standby: Option<Py<PyStandby>>,
    is_bounded: bool,
) -> PyResult<HowPrepared> {
    let standby = standby.as_ref().map(Py::get);
    let settings = settings(url, endpoint, region, allow_http)?;
    let mut transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
    let refused = |why: String| PyOSError::new_err(format!("{}: {why}", settings.place));
    let random = u128::from(random.0) << 64 | u128::from(random.1);
    let probed = || {
        if is_tried {
            return Ok(Verdict::Fit);
        }
        run_probe(&transport, random).map(|probe| probe.verdict())
    };
    match py.detach(probed) {
        Ok(Verdict::Fit | Verdict::FitButGrows(_)) => {}
        Ok(Verdict::Unfit(why)) => {
            return Err(refused(format!("the bucket must not be used: {why}")));
        }
        Err(why) | Ok(Verdict::Unknown(why)) => return Err(refused(why)),
    }
    let prepared = py.detach(|| {
        let cluster = (cluster_id.as_deref(), proposed.as_str());
        let read = standby.map(|it| &*it.read);
        let never = AtomicBool::new(false);
        let is_over = standby.map_or(&never, |it| &it.is_over);
        let mut bucket = Until::new(&mut transport, is_over);
        sharecore_store::prepare_home(&mut bucket, &path, cluster, read, is_bounded, &mut |_| {})
    });
    let prepared = prepared.map_err(|error| refused(error.to_string()))?;
    Ok(as_tuple(prepared, standby))
}

/// How a home starts, its cluster id, the place and time of its newest object, and the bytes read.
pub(crate) type HowPrepared = (&'static str, Option<String>, u64, i64, u64);

/// Returns what was prepared; a standby keeps the end of the journal.
pub(crate) fn as_tuple(prepared: Prepared, standby: Option<&PyStandby>) -> HowPrepared {
    match prepared {
        Prepared::Empty(cluster) => ("empty", Some(cluster), 0, 0, 0),
        Prepared::Local => ("local", None, 0, 0, 0),
        Prepared::Bucket(made) => {
            if let Some(standby) = standby {
                standby.hold(made.end);
            }
            let cluster = Some(made.cluster_id);
            ("bucket", cluster, made.place, made.ms, made.read.bytes)
        }
    }
}

/// Whether a directory has data that are not known to be in a bucket. `OSError`: it is in use, or cannot be written.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn has_own_data(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    let found = py.detach(|| sharecore_store::has_own_data(&path));
    found.map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Watches a home that another broker leads.
#[pyclass(name = "Standby", module = "sharecore._core", frozen)]
pub(crate) struct PyStandby {
    watched: Mutex<Watch>,
    pub(crate) read: Arc<JournalCache>,
    end: Mutex<Option<JournalEnd>>,
    claims_at: Mutex<Option<FreePlace>>,
    /// A fetch that is under way need not go on.
    is_over: AtomicBool,
}

/// A standby with its bucket and its clock, in milliseconds.
pub(crate) struct Watch {
    pub(crate) url: String,
    pub(crate) bucket: Box<dyn Bucket + Send>,
    pub(crate) clock: Box<dyn Fn() -> u64 + Send>,
    pub(crate) standby: Standby,
}

#[pymethods]
impl PyStandby {
    #[new]
    #[pyo3(signature = (url, *, endpoint, region, allow_http, node_id, silence_ms, path = None))]
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
    fn new(
        url: &str,
        endpoint: Option<String>,
        region: Option<String>,
        allow_http: bool,
        node_id: i32,
        silence_ms: u64,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        let settings = settings(url, endpoint, region, allow_http)?;
        let transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
        let watch = Watch {
            url: transport.url().to_string(),
            bucket: Box::new(transport),
            clock: Box::new(|| monotonic_ms().cast_unsigned()),
            standby: Standby::new(node_id, silence_ms),
        };
        Ok(Self::watching(watch, path.as_deref()))
    }

    /// Read the journal; return the leading node, its epoch, and whether the bucket is its home or holds a copy; None if this
    /// broker may claim. `OSError`: the bucket cannot be read.
    fn look(&self, py: Python<'_>) -> PyResult<Option<(i32, u32, bool)>> {
        let led = py.detach(|| {
            let mut held = self.held();
            let watch = &mut *held;
            let led = watch.standby.look(&mut *watch.bucket, &watch.clock);
            let mut claims_at = self
                .claims_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *claims_at = watch.standby.claims_at();
            led.map_err(|why| format!("{}: {why}", watch.url))
        });
        match led.map_err(PyOSError::new_err)? {
            Led::Free => Ok(None),
            Led::By(node, epoch) => Ok(Some((node, epoch, true))),
            Led::Copied(node, epoch) => Ok(Some((node, epoch, false))),
        }
    }

    /// End what `prepare_home` does with this standby: it asks the bucket nothing any more.
    fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Return the segment of the newest frames that were read; 0 before any.
    fn segment(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.held().standby.segment())
    }

    /// Claim the copy of a lost broker found by the last look, under a random name. `OSError`: it may not be claimed.
    fn promote(&self, py: Python<'_>, random: [u8; 16], now_ms: i64) -> PyResult<()> {
        let claimed = py.detach(|| {
            let mut held = self.held();
            let watch = &mut *held;
            let claimed = watch.standby.promote(&mut *watch.bucket, random, now_ms);
            claimed.map_err(|why| format!("{}: {why}", watch.url))
        });
        claimed.map_err(PyOSError::new_err)
    }

    /// Return the catalog entries that changed in the last looks: keys, and values or None.
    #[allow(clippy::type_complexity)]
    fn take_changed<'py>(
        &self,
        py: Python<'py>,
    ) -> Vec<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>)> {
        let changed = py.detach(|| self.held().standby.take_changed());
        let bytes = |value: &[u8]| PyBytes::new(py, value);
        let entries = changed.iter();
        entries
            .map(|(key, value)| (bytes(key), value.as_deref().map(bytes)))
            .collect()
    }

    /// Return the next place of the journal, and for how many milliseconds it is known to have been free.
    fn silence(&self, py: Python<'_>) -> (u64, u64) {
        py.detach(|| {
            let watch = self.held();
            watch.standby.silence((watch.clock)())
        })
    }
}

impl PyStandby {
    /// Keep what is read of the journal in the directory, if any, for a takeover.
    pub(crate) fn watching(mut watch: Watch, path: Option<&Path>) -> Self {
        let read = Arc::new(JournalCache::new(path.unwrap_or(Path::new(""))));
        if path.is_some() {
            watch.standby.keep(Arc::clone(&read));
        }
        Self {
            watched: Mutex::new(watch),
            read,
            end: Mutex::default(),
            claims_at: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    fn held(&self) -> MutexGuard<'_, Watch> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the last look has found free; does not wait for the one that is under way.
    fn claims_at(&self) -> Option<FreePlace> {
        *self
            .claims_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keep the end of the journal for the store that is opened next, if this broker may claim.
    fn hold(&self, found: Option<JournalEnd>) {
        let may_claim = self.claims_at().is_some();
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        *end = found.filter(|_| may_claim);
    }

    /// Sets where a store claims the home, and where it begins to read the journal. What was read is kept no longer.
    pub(crate) fn pass_on(&self, options: &mut BackupOptions) {
        options.claims_at = self.claims_at();
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        options.restored = end.take();
        self.read.clear();
    }
}

/// Return the settings for reaching a bucket; raise `ValueError` if the URL does not name one.
pub(crate) fn settings(
    url: &str,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
) -> PyResult<Settings> {
    Ok(Settings {
        place: Place::parse(url).map_err(PyValueError::new_err)?,
        endpoint,
        region,
        allow_http,
    })
}
