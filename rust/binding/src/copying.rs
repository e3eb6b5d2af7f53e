//! A store's copy in a bucket: its settings, the thread that sends the store's requests to the bucket, and its status.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::Builder;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use sharecore_bucket::{
    Answer, Call, HOME_WINDOW,
    probe::{Probe, Verdict},
};
use sharecore_bucket_io::{Settings, Transport};
use sharecore_store::{
    BackupOptions, BackupState, BackupStatus, BucketLine, CacheOptions, Durability, EvictedFigures,
    EvictedRequests, Options, Store,
};

use crate::{
    bucket::{PyStandby, settings},
    store::PyStore,
};

/// How long closing waits in a home: writes that have not reached the bucket were never confirmed.
const HOME_CLOSE_MS: u64 = 1000;
/// The unit of holes in files of the usual file systems.
const PAGE_BYTES: u64 = 4096;
/// How often the thread checks whether the store was closed.
const LOOK: Duration = Duration::from_secs(1);
/// Minimum pause between two probes of a bucket that could not be reached.
const PROBE_PAUSE: Duration = Duration::from_secs(2);

/// A bucket and the options of the copy in it; used by one store.
#[pyclass(name = "BucketCopy", module = "sharecore._core", frozen)]
pub(crate) struct PyBucketCopy(Mutex<Option<(BucketSender, BackupOptions)>>);

#[pymethods]
impl PyBucketCopy {
    #[new]
    #[pyo3(signature = (url, *, endpoint, region, allow_http, cluster_id, node_id, random, interval_ms, history_ms, surplus_bytes, linger_ms = 20, puts_per_second = 10, cache_bytes = 0, is_tried = false, standby = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        url: &str,
        endpoint: Option<String>,
        region: Option<String>,
        allow_http: bool,
        cluster_id: String,
        node_id: i32,
        random: [u8; 16],
        interval_ms: u64,
        history_ms: i64,
        surplus_bytes: u64,
        linger_ms: u64,
        puts_per_second: u64,
        cache_bytes: u64,
        is_tried: bool,
        standby: Option<&Bound<'_, PyStandby>>,
    ) -> PyResult<Self> {
        let settings = settings(url, endpoint, region, allow_http)?;
        let transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
        let cache = (cache_bytes > 0)
            .then(|| bounded(&settings, cache_bytes))
            .transpose()
            .map_err(PyValueError::new_err)?;
        let mut options = BackupOptions {
            cluster_id,
            node: node_id,
            writer: random,
            interval_ms,
            history_ms,
            surplus_bytes,
            linger_ms,
            puts_per_second,
            cache,
            ..BackupOptions::default()
        };
        if let Some(standby) = standby {
            standby.get().pass_on(&mut options);
        }
        let sender = BucketSender {
            transport,
            random: u128::from_le_bytes(random),
            is_tried,
        };
        Ok(Self(Mutex::new(Some((sender, options)))))
    }
}

impl PyBucketCopy {
    /// Configures `options` for the copy, and returns the sender of its requests. Works once.
    pub(crate) fn take(&self, options: &mut Options) -> PyResult<BucketSender> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = held.take();
        let (sender, backup) =
            taken.ok_or_else(|| PyValueError::new_err("this copy already belongs to a store"))?;
        options.bucket = Some(match options.durability {
            Durability::Bucket => BackupOptions {
                window: HOME_WINDOW,
                close_ms: HOME_CLOSE_MS,
                ..backup
            },
            Durability::Fsync | Durability::Os => backup,
        });
        Ok(sender)
    }
}

/// A bound on the local disk. Reads of evicted segments have a transport of their own: nothing else waits for it.
fn bounded(settings: &Settings, bytes: u64) -> Result<CacheOptions, String> {
    let transport = Transport::start(settings)?;
    Ok(CacheOptions {
        bytes,
        page_bytes: PAGE_BYTES,
        requests: EvictedRequests(Arc::new(move |requests| {
            for (what, reply) in requests {
                transport.send(Call { id: 0, what }, move |_, answer| reply(answer));
            }
        })),
    })
}

/// Sends a store's requests to its bucket.
pub(crate) struct BucketSender {
    transport: Transport,
    random: u128,
    /// True if a probe has already shown that the bucket is safe to use.
    is_tried: bool,
}

impl BucketSender {
    /// Starts the sender on its own thread, which ends when the store is closed.
    pub(crate) fn start(self, store: &Store) -> std::io::Result<()> {
        let Some(line) = store.bucket_line() else {
            return Ok(());
        };
        Builder::new()
            .name("sharecore-copy".into())
            .spawn(move || self.run(&line))
            .map(drop)
    }

    fn run(self, line: &Arc<BucketLine>) {
        let mut probe_result = ProbeResult {
            is_fit: self.is_tried,
            ..ProbeResult::default()
        };
        loop {
            match line.next(LOOK) {
                None if line.is_closed() => return,
                None => {}
                Some(call) => {
                    if let Some(why) = probe_result.refusal(&self.transport, self.random) {
                        line.answer(call.id, Answer::Unknown(why));
                        continue;
                    }
                    let line = line.clone();
                    self.transport
                        .send(call, move |id, answer| line.answer(id, answer));
                }
            }
        }
    }
}

/// The result of probing the bucket.
#[derive(Default)]
struct ProbeResult {
    is_fit: bool,
    /// Why the bucket may not be used (yet), and when that was found.
    refusal: Option<(String, Instant)>,
    is_unfit: bool,
}

impl ProbeResult {
    /// Returns why no request may be sent, or None. Probes the bucket on the first call and again after a pause.
    fn refusal(&mut self, transport: &Transport, random: u128) -> Option<String> {
        if self.is_fit {
            return None;
        }
        if let Some((why, at)) = &self.refusal
            && (self.is_unfit || at.elapsed() < PROBE_PAUSE)
        {
            return Some(why.clone());
        }
        let why = match probed(transport, random) {
            Err(why) | Ok(Verdict::Unknown(why)) => why,
            Ok(Verdict::Unfit(why)) => {
                self.is_unfit = true;
                format!("the bucket must not be used: {why}")
            }
            Ok(Verdict::Fit | Verdict::FitButGrows(_)) => {
                self.is_fit = true;
                return None;
            }
        };
        self.refusal = Some((why.clone(), Instant::now()));
        Some(why)
    }
}

fn probed(transport: &Transport, random: u128) -> Result<Verdict, String> {
    run_probe(transport, random).map(|probe| probe.verdict())
}

/// Runs a probe to its end.
pub(crate) fn run_probe(transport: &Transport, random: u128) -> Result<Probe, String> {
    let mut probe = Probe::new(random, transport.rights());
    while !probe.is_ended() {
        let calls = probe.calls();
        if calls.is_empty() {
            return Err("the thread that sends requests to the bucket has ended".into());
        }
        let (answered, answers) = mpsc::channel();
        for call in calls {
            let answered = answered.clone();
            // `run_probe` receives until every answer is in, so the receiver still exists
            transport.send(call, move |id, answer| drop(answered.send((id, answer))));
        }
        drop(answered);
        for (id, answer) in answers {
            probe.answer(id, answer);
        }
    }
    if matches!(probe.verdict(), Verdict::Fit | Verdict::FitButGrows(_))
        && let Some(why) = transport.harmful_rule()
    {
        probe.note_rule(why);
    }
    Ok(probe)
}

/// True if no other broker can lead the store's home, given that it waits at least `lease_ms` before a claim. Always true
/// without a home.
#[pyfunction]
pub(crate) fn is_proven(store: &Bound<'_, PyStore>, lease_ms: u64) -> bool {
    store.get().0.is_proven(lease_ms)
}

#[pymethods]
impl PyStore {
    #[getter]
    fn maintenance_error(&self) -> Option<String> {
        self.0.maintenance_error()
    }

    #[getter]
    fn maintenance_failed(&self) -> u64 {
        self.0.maintenance_failed()
    }

    fn evicted_segments(&self) -> (usize, u64) {
        self.0.evicted_segments()
    }

    #[allow(clippy::needless_pass_by_value)]
    fn keep_local(&self, py: Python<'_>, logs: Vec<u64>) -> PyResult<()> {
        py.detach(|| self.0.keep_local(&logs))
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

/// Status of a store's copy.
#[pyclass(name = "BucketStatus", module = "sharecore._core", frozen, get_all)]
pub(crate) struct PyBucketStatus {
    state: &'static str,
    stopped: Option<String>,
    error: Option<String>,
    epoch: u32,
    place: u64,
    behind_bytes: u64,
    behind_ms: u64,
    objects: u64,
    bytes: u64,
    segments_waiting: u64,
    surplus_bytes: u64,
    creates: u64,
    gets: u64,
    lists: u64,
    deletes: u64,
    failed: u64,
    sent_bytes: u64,
    local_bytes: u64,
    internal_bytes: u64,
    remote_bytes: u64,
    evicted: u64,
    pieces: u64,
    piece_bytes: u64,
    piece_micros: u64,
    pieces_failed: u64,
    eviction_failed: u64,
    eviction_error: Option<String>,
}

impl PyBucketStatus {
    /// The status of a store's copy; None without one.
    pub(crate) fn of(store: &Store) -> Option<Self> {
        let evicted = store.evicted_figures().unwrap_or_default();
        Some((store.bucket_status()?, evicted).into())
    }
}

impl From<(BackupStatus, EvictedFigures)> for PyBucketStatus {
    fn from((status, evicted): (BackupStatus, EvictedFigures)) -> Self {
        Self {
            state: match status.state {
                BackupState::Attaching => "attaching",
                BackupState::Leading => "leading",
                BackupState::Fenced => "fenced",
                BackupState::Refused => "refused",
            },
            stopped: status.stopped,
            error: status.error,
            epoch: status.epoch,
            place: status.place,
            behind_bytes: status.behind_bytes,
            behind_ms: status.behind_ms,
            objects: status.objects,
            bytes: status.bytes,
            segments_waiting: status.segments_waiting,
            surplus_bytes: status.surplus_bytes,
            creates: status.creates,
            gets: status.gets,
            lists: status.lists,
            deletes: status.deletes,
            failed: status.failed,
            sent_bytes: status.sent_bytes,
            local_bytes: evicted.local_bytes,
            internal_bytes: evicted.internal_bytes,
            remote_bytes: evicted.remote_bytes,
            evicted: evicted.evicted,
            pieces: evicted.reads,
            piece_bytes: evicted.read_bytes,
            piece_micros: evicted.read_micros,
            pieces_failed: evicted.failed,
            eviction_failed: evicted.work_failed,
            eviction_error: evicted.work_error,
        }
    }
}
