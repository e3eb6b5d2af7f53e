//! `sharecore._core.Store`: logs and catalog for `sharecore.storage`.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use sharecore_store::{
    Change, Durability, FaultPoint, LogConfig, Options, OwnCommits, Refusal, Store, StoreError,
    TimestampType,
};

use crate::batches::decoded;
use crate::compression::codec;
use crate::copying::{PyBucketCopy, PyBucketStatus};
use crate::drained::{Appended, Drained, Offsets, appended, as_tuple, as_tuples};
use crate::error::kafka_error;
use crate::sending::{Pair, pairs};
use crate::slices::{PyReading, Read, begin, bytes_of, copied, copied_cached, wanted};

type ActiveProducer = (i64, i16, i32, i64, i32, i64);
type Scanned<'py> = (Bound<'py, PyList>, i64);

pub(crate) fn refused(py: Python<'_>, refusal: &Refusal) -> PyErr {
    kafka_error(py, refusal.code(), &refusal.to_string())
}

fn failed(error: &StoreError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn options(
    durability: &str,
    segment_bytes: u64,
    cache_bytes: usize,
    staging_bytes: usize,
) -> PyResult<Options> {
    let durability = match durability {
        "fsync" => Durability::Fsync,
        "os" => Durability::Os,
        "bucket" => Durability::Bucket,
        _ => return Err(PyValueError::new_err("unknown durability")),
    };
    Ok(Options {
        durability,
        segment_bytes,
        cache_bytes,
        staging_bytes,
        ..Options::default()
    })
}

#[pyclass(name = "Store", module = "sharecore._core", frozen)]
pub(crate) struct PyStore(pub(crate) Store);

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (path, *, durability = "fsync", segment_bytes = 67_108_864, cache_bytes = 16_777_216, staging_bytes = 33_554_432, producer_bytes = 536_870_912, read_threads = 4, own_commit_clients = 16, bucket = None))]
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        durability: &str,
        segment_bytes: u64,
        cache_bytes: usize,
        staging_bytes: usize,
        producer_bytes: usize,
        read_threads: usize,
        own_commit_clients: usize,
        bucket: Option<&Bound<'_, PyBucketCopy>>,
    ) -> PyResult<Self> {
        let mut options = Options {
            producer_bytes,
            read_threads,
            own_commits: OwnCommits {
                clients_max: own_commit_clients,
                ..OwnCommits::default()
            },
            ..options(durability, segment_bytes, cache_bytes, staging_bytes)?
        };
        let sender = bucket
            .map(|copy| copy.get().take(&mut options))
            .transpose()?;
        let store = py.detach(|| Store::open(&path, &options));
        let store = store.map_err(|error| failed(&error))?;
        sender.map_or(Ok(()), |sender| sender.start(&store))?;
        Ok(Self(store))
    }

    /// Status of the copy in a bucket; None without one.
    fn bucket_status(&self) -> Option<PyBucketStatus> {
        PyBucketStatus::of(&self.0)
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, durability = "fsync", segment_bytes = 67_108_864, cache_bytes = 16_777_216, staging_bytes = 33_554_432, ahead_bytes = 1_048_576, own_commit_clients = 0))]
    #[allow(clippy::needless_pass_by_value)]
    fn stepped(
        path: PathBuf,
        durability: &str,
        segment_bytes: u64,
        cache_bytes: usize,
        staging_bytes: usize,
        ahead_bytes: u64,
        own_commit_clients: usize,
    ) -> PyResult<Self> {
        let options = Options {
            ahead_bytes,
            own_commits: OwnCommits {
                clients_max: own_commit_clients,
                time_max: Duration::MAX,
            },
            ..options(durability, segment_bytes, cache_bytes, staging_bytes)?
        };
        Store::open_stepped(&path, &options)
            .map(Self)
            .map_err(|error| failed(&error))
    }

    #[getter]
    fn has_work(&self) -> bool {
        self.0.has_work()
    }

    fn step(&self) -> bool {
        self.0.step()
    }

    fn maintain(&self) -> bool {
        self.0.maintain()
    }

    fn abandon(&self) {
        self.0.abandon();
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, cache_bytes = 0))]
    #[allow(clippy::needless_pass_by_value)]
    fn look(py: Python<'_>, path: PathBuf, cache_bytes: usize) -> PyResult<Self> {
        py.detach(|| Store::look(&path, cache_bytes))
            .map(Self)
            .map_err(|error| failed(&error))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn fileno(&self) -> i32 {
        self.0.fileno()
    }

    fn drain(&self) -> Drained {
        as_tuples(self.0.drain())
    }

    fn wait(&self, py: Python<'_>, sequence: u64) {
        py.detach(|| self.0.wait(sequence));
    }

    fn figures(&self) -> (Vec<u64>, f64, u64, u64, u64, u64, u64, u64) {
        let figures = self.0.figures();
        (
            figures.commits.to_vec(),
            figures.commit_time.as_secs_f64(),
            figures.written_bytes,
            figures.failed_commits,
            figures.segments,
            figures.segment_bytes,
            figures.live_bytes,
            figures.staged_bytes,
        )
    }

    #[getter]
    fn staged_bytes(&self) -> usize {
        self.0.staged_bytes()
    }

    fn entries<'py>(
        &self,
        py: Python<'py>,
        prefix: &[u8],
    ) -> Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let entries = self.0.entries(prefix).into_iter();
        entries
            .map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value)))
            .collect()
    }

    #[pyo3(signature = (puts = vec![], deletes = vec![], *, create_logs = vec![], drop_logs = vec![]))]
    fn change(
        &self,
        py: Python<'_>,
        puts: Vec<(Vec<u8>, Vec<u8>)>,
        deletes: Vec<Vec<u8>>,
        create_logs: Vec<u64>,
        drop_logs: Vec<u64>,
    ) -> PyResult<u64> {
        let puts = puts.into_iter().map(|(key, value)| Change::Put(key, value));
        let deletes = deletes.into_iter().map(Change::Delete);
        let created = create_logs.into_iter().map(Change::CreateLog);
        let dropped = drop_logs.into_iter().map(Change::DropLog);
        let changes = puts.chain(deletes).chain(created).chain(dropped).collect();
        self.0
            .change(changes)
            .map_err(|refusal| refused(py, &refusal))
    }

    fn new_log_id(&self) -> u64 {
        self.0.new_log_id()
    }

    fn logs(&self) -> Vec<u64> {
        self.0.logs()
    }

    fn offsets(&self, py: Python<'_>, log: u64) -> PyResult<Offsets> {
        self.0
            .offsets(log)
            .map(as_tuple)
            .map_err(|refusal| refused(py, &refusal))
    }

    fn log_bytes(&self, py: Python<'_>, log: u64) -> PyResult<u64> {
        self.0
            .log_bytes(log)
            .map_err(|refusal| refused(py, &refusal))
    }

    #[pyo3(signature = (log, *, max_batch_bytes, log_append_time, before_max_ms, after_max_ms, needs_keys = false, compression = None))]
    #[allow(clippy::too_many_arguments)]
    fn configure(
        &self,
        py: Python<'_>,
        log: u64,
        max_batch_bytes: usize,
        log_append_time: bool,
        before_max_ms: i64,
        after_max_ms: i64,
        needs_keys: bool,
        compression: Option<(i16, Option<i32>)>,
    ) -> PyResult<()> {
        let timestamp_type = if log_append_time {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        };
        let config = LogConfig {
            max_batch_bytes,
            timestamp_type,
            before_max_ms,
            after_max_ms,
            needs_keys,
            codec: compression.map(codec).transpose()?,
        };
        self.0
            .configure(log, config)
            .map_err(|refusal| refused(py, &refusal))
    }

    fn append(&self, py: Python<'_>, log: u64, records: &[u8], now_ms: i64) -> PyResult<Appended> {
        appended(py, py.detach(|| self.0.append(log, records, now_ms)))
    }

    fn announce(
        &self,
        py: Python<'_>,
        log: u64,
        producer: (i64, i16, i32),
        from_zero: bool,
        now_ms: i64,
    ) -> PyResult<()> {
        let (id, epoch, sequence) = producer;
        self.0
            .announce(log, (id, epoch), sequence, from_zero, now_ms)
            .map_err(|refusal| refused(py, &refusal))
    }

    #[pyo3(signature = (log, records, now_ms, producer = None, lingers = false))]
    #[allow(clippy::needless_pass_by_value)]
    fn append_local(
        &self,
        py: Python<'_>,
        log: u64,
        records: Vec<Pair>,
        now_ms: i64,
        producer: Option<(i64, i16)>,
        lingers: bool,
    ) -> PyResult<Appended> {
        let pairs = pairs(&records);
        let result = self.0.append_local(log, &pairs, producer, now_ms, lingers);
        appended(py, result)
    }

    #[allow(clippy::too_many_arguments)]
    fn append_marker(
        &self,
        py: Python<'_>,
        log: u64,
        producer_id: i64,
        producer_epoch: i16,
        coordinator_epoch: i32,
        commit: bool,
        now_ms: i64,
    ) -> PyResult<Appended> {
        let producer = (producer_id, producer_epoch);
        appended(
            py,
            self.0
                .append_marker(log, producer, coordinator_epoch, commit, now_ms),
        )
    }

    fn delete_records(&self, py: Python<'_>, log: u64, before_offset: i64) -> PyResult<u64> {
        self.0
            .delete_records(log, before_offset)
            .map_err(|refusal| refused(py, &refusal))
    }

    #[pyo3(signature = (log, offset, max_bytes, limit = None, at_least_one = true, max_records = i64::MAX))]
    #[allow(clippy::too_many_arguments)]
    fn read<'py>(
        &self,
        py: Python<'py>,
        log: u64,
        offset: i64,
        max_bytes: i64,
        limit: Option<i64>,
        at_least_one: bool,
        max_records: i64,
    ) -> PyResult<Read<'py>> {
        let want = wanted(max_bytes, limit, at_least_one, max_records);
        let slice = py.detach(|| self.0.read(log, offset, want));
        copied(py, slice.map_err(|refusal| refused(py, &refusal))?)
    }

    #[pyo3(signature = (log, offset, max_bytes, limit = None, at_least_one = true, max_records = i64::MAX))]
    #[allow(clippy::too_many_arguments)]
    fn read_cached<'py>(
        &self,
        py: Python<'py>,
        log: u64,
        offset: i64,
        max_bytes: i64,
        limit: Option<i64>,
        at_least_one: bool,
        max_records: i64,
    ) -> PyResult<Option<Read<'py>>> {
        let want = wanted(max_bytes, limit, at_least_one, max_records);
        let slice = self.0.read_cached(log, offset, want);
        let Some(slice) = slice.map_err(|refusal| refused(py, &refusal))? else {
            return Ok(None);
        };
        copied_cached(py, slice)
    }

    #[pyo3(signature = (log, offset, max_bytes, limit = None, at_least_one = true, max_records = i64::MAX, whole = false))]
    #[allow(clippy::too_many_arguments)]
    fn read_apart(
        &self,
        py: Python<'_>,
        log: u64,
        offset: i64,
        max_bytes: i64,
        limit: Option<i64>,
        at_least_one: bool,
        max_records: i64,
        whole: bool,
    ) -> PyResult<(u64, Option<PyReading>)> {
        let want = wanted(max_bytes, limit, at_least_one, max_records);
        begin(py, &self.0, log, offset, want, whole)
    }

    #[getter]
    fn has_reads(&self) -> bool {
        self.0.has_reads()
    }

    fn step_read(&self) -> bool {
        self.0.step_read()
    }

    #[pyo3(signature = (log, offset, max_bytes, limit = None))]
    fn readable_bytes(
        &self,
        py: Python<'_>,
        log: u64,
        offset: i64,
        max_bytes: i64,
        limit: Option<i64>,
    ) -> PyResult<Option<usize>> {
        let want = wanted(max_bytes, limit, true, i64::MAX);
        let slice = self.0.read_cached(log, offset, want);
        let slice = slice.map_err(|refusal| refused(py, &refusal))?;
        Ok(slice.map(|slice| slice.size))
    }

    fn scan<'py>(
        &self,
        py: Python<'py>,
        log: u64,
        offset: i64,
        max_bytes: i64,
    ) -> PyResult<Scanned<'py>> {
        let want = wanted(max_bytes, None, true, i64::MAX);
        let read = py.detach(|| bytes_of(&self.0.read(log, offset, want)?));
        let (bytes, last) = read.map_err(|refusal| match refusal {
            Refusal::Damaged(what) => PyValueError::new_err(what),
            other => refused(py, &other),
        })?;
        let found = decoded(py, &bytes)?;
        Ok((found, last.map_or(offset, |last| last + 1)))
    }

    #[getter]
    fn torn(&self) -> Option<(PathBuf, u64, u64)> {
        let torn = self.0.torn();
        torn.map(|torn| (torn.path, torn.at, torn.bytes))
    }

    fn verify(&self, py: Python<'_>, log: u64) -> PyResult<()> {
        py.detach(|| self.0.verify(log))
            .map_err(|refusal| refused(py, &refusal))
    }

    fn offset_for(&self, py: Python<'_>, log: u64, timestamp: i64) -> PyResult<Option<(i64, i64)>> {
        py.detach(|| self.0.offset_for(log, timestamp))
            .map_err(|refusal| refused(py, &refusal))
    }

    fn max_timestamp(&self, py: Python<'_>, log: u64) -> PyResult<Option<i64>> {
        py.detach(|| self.0.max_timestamp(log))
            .map_err(|refusal| refused(py, &refusal))
    }

    fn aborted(&self, py: Python<'_>, log: u64, first: i64, end: i64) -> PyResult<Vec<(i64, i64)>> {
        let aborted = self.0.aborted(log, first, end);
        let aborted = aborted.map_err(|refusal| refused(py, &refusal))?;
        Ok(aborted
            .into_iter()
            .map(|a| (a.producer_id, a.first_offset))
            .collect())
    }

    fn active_producers(&self, py: Python<'_>, log: u64) -> PyResult<Vec<ActiveProducer>> {
        let found = self.0.active_producers(log);
        let found = found.map_err(|refusal| refused(py, &refusal))?;
        Ok(found
            .into_iter()
            .map(|each| {
                (
                    each.producer_id,
                    each.epoch,
                    each.last_sequence,
                    each.last_timestamp,
                    each.coordinator_epoch,
                    each.transaction_start.unwrap_or(-1),
                )
            })
            .collect())
    }

    #[pyo3(signature = (log, *, oldest_ms = None, max_bytes = None))]
    fn retain(
        &self,
        py: Python<'_>,
        log: u64,
        oldest_ms: Option<i64>,
        max_bytes: Option<u64>,
    ) -> PyResult<Option<u64>> {
        py.detach(|| self.0.retain(log, oldest_ms, max_bytes))
            .map_err(|refusal| refused(py, &refusal))
    }

    fn expire_producers(&self, before_ms: i64) {
        self.0.expire_producers(before_ms);
    }

    #[pyo3(signature = (point, errno, *, skip = 0, times = 1))]
    fn plan_fault(&self, point: &str, errno: i32, skip: u64, times: u64) -> PyResult<()> {
        let point = match point {
            "write" => FaultPoint::Write,
            "sync" => FaultPoint::Sync,
            other => {
                return Err(PyValueError::new_err(format!(
                    "unknown fault point {other:?}: use 'write' or 'sync'"
                )));
            }
        };
        self.0.fault().plan(point, errno, skip, times);
        Ok(())
    }
}
