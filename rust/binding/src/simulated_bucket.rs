//! A bucket in memory for simulations, which decide when requests arrive, and whether.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_bucket::mistakes::{self, Mistake};
use sharecore_bucket::{Answer, Bucket, Call, HOME_WINDOW, MemoryBucket, What};
use sharecore_store::{
    BackupOptions, CacheOptions, Durability, EvictedRequests, Options, Requests, Standby, Store,
};

use crate::bucket::{HowPrepared, PyStandby, Watch, as_tuple};
use crate::home_nodes::PyHomeNodes;
use crate::store::PyStore;

/// A bucket that several simulated machines share.
#[pyclass(name = "MemoryBucket", module = "sharecore._core", frozen)]
pub(crate) struct PyMemoryBucket(Arc<Mutex<MemoryBucket>>);

#[pymethods]
impl PyMemoryBucket {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    fn ask(&self, call: &PyBucketCall) -> PyBucketAnswer {
        PyBucketAnswer(held(&self.0).ask(call.0.what.clone()))
    }

    fn objects(&self) -> Vec<(String, usize)> {
        let bucket = held(&self.0);
        let objects = bucket.objects();
        objects
            .map(|(name, body)| (name.to_string(), body.len()))
            .collect()
    }

    fn get<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyBytes>> {
        let bucket = held(&self.0);
        bucket.get(name).map(|body| PyBytes::new(py, body))
    }

    fn set(&self, name: &str, body: Option<Vec<u8>>) {
        held(&self.0).set(name, body);
    }

    #[allow(clippy::needless_pass_by_value)]
    fn standby(
        &self,
        reach: Py<PyAny>,
        now_ms: Py<PyAny>,
        node_id: i32,
        silence_ms: u64,
        path: PathBuf,
    ) -> PyStandby {
        let clock = move || {
            Python::attach(|py| {
                let read = now_ms.call0(py).and_then(|now| now.extract(py));
                read.expect("a simulated clock returns milliseconds")
            })
        };
        let watch = Watch {
            url: "the bucket".into(),
            bucket: Box::new(self.way(reach)),
            clock: Box::new(clock),
            standby: Standby::new(node_id, silence_ms),
        };
        PyStandby::watching(watch, Some(&path))
    }

    fn cache(&self, reach: Py<PyAny>, bytes: u64) -> PySimulatedCache {
        let way = Mutex::new(self.way(reach));
        let ask = move |requests: Requests| {
            let (whats, replies): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
            let mut way = way.lock().unwrap_or_else(PoisonError::into_inner);
            for (answer, reply) in way.ask_all(whats).into_iter().zip(replies) {
                reply(answer);
            }
        };
        PySimulatedCache(CacheOptions {
            bytes,
            // simulated segments are small
            page_bytes: 16,
            requests: EvictedRequests(Arc::new(ask)),
        })
    }

    fn home_nodes(&self, reach: Py<PyAny>) -> PyHomeNodes {
        PyHomeNodes::of("the bucket".into(), Box::new(self.way(reach)))
    }

    #[pyo3(signature = (reach, path, cluster_id, proposed, standby = None, is_bounded = false))]
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
    fn prepare_home(
        &self,
        py: Python<'_>,
        reach: Py<PyAny>,
        path: PathBuf,
        cluster_id: Option<String>,
        proposed: String,
        standby: Option<Py<PyStandby>>,
        is_bounded: bool,
    ) -> PyResult<HowPrepared> {
        let mut way = self.way(reach);
        let standby = standby.as_ref().map(Py::get);
        let prepared = py.detach(|| {
            let cluster = (cluster_id.as_deref(), proposed.as_str());
            let read = standby.map(|it| &*it.read);
            sharecore_store::prepare_home(&mut way, &path, cluster, read, is_bounded, &mut |_| {})
        });
        let prepared = prepared.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(as_tuple(prepared, standby))
    }
}

/// A bound on the local disk of a simulated machine.
#[pyclass(name = "SimulatedCache", module = "sharecore._core", frozen)]
pub(crate) struct PySimulatedCache(CacheOptions);

impl PyMemoryBucket {
    fn way(&self, reach: Py<PyAny>) -> Way {
        Way {
            bucket: Arc::clone(&self.0),
            reach,
        }
    }
}

fn held(bucket: &Mutex<MemoryBucket>) -> MutexGuard<'_, MemoryBucket> {
    bucket.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request of a store to its bucket.
#[pyclass(name = "BucketCall", module = "sharecore._core", frozen)]
pub(crate) struct PyBucketCall(Call);

#[pymethods]
impl PyBucketCall {
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.what.kind()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.what.name()
    }
}

/// What the bucket answers.
#[pyclass(name = "BucketAnswer", module = "sharecore._core", frozen)]
pub(crate) struct PyBucketAnswer(Answer);

#[pymethods]
impl PyBucketAnswer {
    #[staticmethod]
    fn unknown(why: String) -> Self {
        Self(Answer::Unknown(why))
    }

    #[staticmethod]
    fn absent() -> Self {
        Self(Answer::Absent)
    }
}

/// The way of one process to the bucket, which waits for each answer. The method `ask` of `reach` gets kinds and names of
/// requests that are made at once, and returns for each why it has no answer, or None; `wait` gets seconds.
struct Way {
    bucket: Arc<Mutex<MemoryBucket>>,
    reach: Py<PyAny>,
}

impl Bucket for Way {
    fn ask(&mut self, what: What) -> Answer {
        self.ask_all(vec![what]).remove(0)
    }

    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        let lost: Vec<Option<String>> = Python::attach(|py| {
            let named = whats.iter().map(|what| (what.kind(), what.name()));
            let named = PyList::new(py, named)?;
            self.reach.call_method1(py, "ask", (named,))?.extract(py)
        })
        .expect("a simulated network answers for each request");
        let mut bucket = held(&self.bucket);
        let asked = whats.into_iter().zip(lost);
        asked
            .map(|(what, lost)| lost.map_or_else(|| bucket.ask(what), Answer::Unknown))
            .collect()
    }

    fn pause(&mut self, time: Duration) {
        Python::attach(|py| drop(self.reach.call_method1(py, "wait", (time.as_secs_f64(),))));
    }
}

#[pymethods]
impl PyStore {
    #[staticmethod]
    #[pyo3(signature = (path, *, standby, cluster_id, node_id, writer, segment_bytes, cache_bytes, staging_bytes, object_bytes, part_bytes, objects_max, history_ms, linger_ms, puts_per_second, cache = None))]
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
    fn stepped_home(
        path: PathBuf,
        standby: &Bound<'_, PyStandby>,
        cluster_id: String,
        node_id: i32,
        writer: [u8; 16],
        segment_bytes: u64,
        cache_bytes: usize,
        staging_bytes: usize,
        object_bytes: usize,
        part_bytes: u64,
        objects_max: usize,
        history_ms: i64,
        linger_ms: u64,
        puts_per_second: u64,
        cache: Option<&Bound<'_, PySimulatedCache>>,
    ) -> PyResult<Self> {
        let mut bucket = BackupOptions {
            cluster_id,
            node: node_id,
            writer,
            object_bytes,
            part_bytes,
            objects_max,
            history_ms,
            linger_ms,
            puts_per_second,
            window: HOME_WINDOW,
            close_ms: 0,
            cache: cache.map(|it| it.get().0.clone()),
            ..BackupOptions::default()
        };
        standby.get().pass_on(&mut bucket);
        let options = Options {
            durability: Durability::Bucket,
            segment_bytes,
            cache_bytes,
            staging_bytes,
            ahead_bytes: 0,
            bucket: Some(bucket),
            ..Options::default()
        };
        let store = Store::open_stepped(&path, &options);
        store
            .map(Self)
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn step_bucket(&self, now_ms: u64, wall_ms: i64) -> Option<u64> {
        self.0.step_bucket(now_ms, wall_ms)
    }

    fn bucket_calls(&self) -> Vec<PyBucketCall> {
        let line = self.0.bucket_line();
        let calls = std::iter::from_fn(|| line.as_ref()?.next(Duration::ZERO));
        calls.map(PyBucketCall).collect()
    }

    fn answer_bucket(&self, id: u64, answer: &PyBucketAnswer) {
        if let Some(line) = self.0.bucket_line() {
            line.answer(id, answer.0.clone());
        }
    }

    fn is_proven_at(&self, now_ms: u64, lease_ms: u64) -> bool {
        self.0.is_proven_at(now_ms, lease_ms)
    }

    fn set_pump(&self, pump: Py<PyAny>) {
        self.0.set_pump(move || {
            Python::attach(|py| drop(pump.call0(py).expect("a simulation does not fail")));
        });
    }

    fn is_settled(&self, sequence: u64) -> bool {
        self.0.is_settled(sequence)
    }
}

const MISTAKES: [(&str, Mistake); 14] = [
    ("claims swept", Mistake::ClaimsSwept),
    ("answered out of order", Mistake::AnsweredOutOfOrder),
    ("exists is ours", Mistake::ExistsIsOurs),
    ("unknown skipped", Mistake::UnknownSkipped),
    ("other bytes", Mistake::OtherBytes),
    ("resume at once", Mistake::ResumeAtOnce),
    ("window ignored", Mistake::WindowIgnored),
    ("claim unconfirmed", Mistake::ClaimUnconfirmed),
    ("segment swept", Mistake::SegmentSwept),
    ("frame before upload", Mistake::FrameBeforeUpload),
    ("tail trusted", Mistake::TailTrusted),
    ("checkpoint unshipped", Mistake::CheckpointUnshipped),
    ("lease from answer", Mistake::LeaseFromAnswer),
    ("silence over failures", Mistake::SilenceOverFailures),
];

/// Plant a mistake about buckets in this thread; `None` removes it.
#[pyfunction]
#[pyo3(signature = (name = None))]
pub(crate) fn plant_mistake(name: Option<&str>) -> PyResult<()> {
    let found = MISTAKES.iter().find(|(known, _)| Some(*known) == name);
    mistakes::plant(found.map(|(_, mistake)| *mistake));
    match name {
        Some(name) if found.is_none() => {
            Err(PyValueError::new_err(format!("unknown mistake: {name}")))
        }
        _ => Ok(()),
    }
}
