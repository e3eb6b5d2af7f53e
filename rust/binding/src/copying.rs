//! A store's copy in a bucket: what is asked of it, the thread between store and transport, and how it stands.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::Builder;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sharecore_bucket::Answer;
use sharecore_bucket::{
    HOME_WINDOW,
    probe::{Probe, Verdict},
};
use sharecore_bucket_io::Transport;
use sharecore_store::{
    BackupOptions, BackupState, BackupStatus, BucketLine, Durability, Options, Store,
};

use crate::{bucket::settings, store::PyStore};

/// How long closing waits then: what is not there was not answered.
const HOME_CLOSE_MS: u64 = 1000;
/// How long the thread waits for a call before it looks whether the store was closed.
const LOOK: Duration = Duration::from_secs(1);
/// A bucket that could not be tried is tried again so much later, at the earliest.
const PROBE_PAUSE: Duration = Duration::from_secs(2);

/// A bucket, and what is asked of the copy in it. One store takes it.
#[pyclass(name = "BucketCopy", module = "sharecore._core", frozen)]
pub(crate) struct PyBucketCopy(Mutex<Option<(Carrier, BackupOptions)>>);

#[pymethods]
impl PyBucketCopy {
    #[new]
    #[pyo3(signature = (url, *, endpoint, region, allow_http, cluster_id, node_id, random, interval_ms, history_ms, surplus_bytes, linger_ms = 20, puts_per_second = 10, is_tried = false))]
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
        is_tried: bool,
    ) -> PyResult<Self> {
        let settings = settings(url, endpoint, region, allow_http)?;
        let transport = Transport::start(&settings).map_err(PyValueError::new_err)?;
        let options = BackupOptions {
            cluster_id,
            node: node_id,
            writer: random,
            interval_ms,
            history_ms,
            surplus_bytes,
            linger_ms,
            puts_per_second,
            ..BackupOptions::default()
        };
        let carrier = Carrier {
            transport,
            random: u128::from_le_bytes(random),
            is_tried,
        };
        Ok(Self(Mutex::new(Some((carrier, options)))))
    }
}

impl PyBucketCopy {
    /// Ask a store for the copy, once, and return what carries its calls.
    pub(crate) fn take(&self, options: &mut Options) -> PyResult<Carrier> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = held.take();
        let (carrier, backup) =
            taken.ok_or_else(|| PyValueError::new_err("a store has this copy already"))?;
        options.bucket = Some(match options.durability {
            Durability::Bucket => BackupOptions {
                window: HOME_WINDOW,
                close_ms: HOME_CLOSE_MS,
                ..backup
            },
            Durability::Fsync | Durability::Os => backup,
        });
        Ok(carrier)
    }
}

/// Carries the calls of a store to its bucket.
pub(crate) struct Carrier {
    transport: Transport,
    random: u128,
    /// The bucket is known to be one that can be relied on.
    is_tried: bool,
}

impl Carrier {
    /// Begin, on a thread of its own that ends when the store is closed.
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
        let mut tried = Tried {
            is_fit: self.is_tried,
            ..Tried::default()
        };
        loop {
            match line.next(LOOK) {
                None if line.is_closed() => return,
                None => {}
                Some(call) => {
                    if let Some(why) = tried.refusal(&self.transport, self.random) {
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

/// Whether the bucket was found to be one that can be relied on.
#[derive(Default)]
struct Tried {
    is_fit: bool,
    /// Why it is not, or not yet, and when that was found.
    refusal: Option<(String, Instant)>,
    is_unfit: bool,
}

impl Tried {
    /// Return why nothing may be sent; the first call, and some after it, try the bucket.
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

/// Send all that a probe wants to try, and return it at its end.
pub(crate) fn run_probe(transport: &Transport, random: u128) -> Result<Probe, String> {
    let mut probe = Probe::new(random);
    while !probe.is_ended() {
        let calls = probe.calls();
        if calls.is_empty() {
            return Err("the thread that sends requests to the bucket has ended".into());
        }
        let (answered, answers) = mpsc::channel();
        for call in calls {
            let answered = answered.clone();
            // who probes waits for all answers
            transport.send(call, move |id, answer| drop(answered.send((id, answer))));
        }
        drop(answered);
        for (id, answer) in answers {
            probe.answer(id, answer);
        }
    }
    Ok(probe)
}

/// Whether nobody else can lead a store's home who waits longer than `lease_ms` before a claim; true where answers wait for no
/// bucket.
#[pyfunction]
pub(crate) fn is_proven(store: &Bound<'_, PyStore>, lease_ms: u64) -> bool {
    store.get().0.is_proven(lease_ms)
}

/// How the copy of a store stands.
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
}

impl From<BackupStatus> for PyBucketStatus {
    fn from(status: BackupStatus) -> Self {
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
        }
    }
}
