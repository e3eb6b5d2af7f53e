//! `lease`: reads a share partition's log and acquires records, in one call.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sharecore_engine::{Acquired, OffsetRange};
use sharecore_lease::{
    AcquireRequest, Admitted, Leased, Log, Part, Source, Stop, Want, lease as lease_from,
};
use sharecore_share::Tally;

use crate::convert::ranges;
use crate::error::{failed, kafka_error_in};
use crate::log_offsets::PyLogAccess;
use crate::partition::PyPartition;
use crate::python;
use crate::slices::{copied_cached, wanted};
use crate::store::refused;
use crate::tickets::PyStoredLog;

/// The result of an acquisition.
pub(crate) struct Lease<'py> {
    /// Record batches that contain the acquired records.
    pub(crate) records: Bound<'py, PyBytes>,
    pub(crate) acquired: Vec<Acquired>,
    /// Number of acquired records.
    pub(crate) total: i64,
    /// True if records of aborted transactions were archived.
    pub(crate) archived: bool,
    /// The `KafkaError` that stopped reading.
    pub(crate) stopped: Option<Bound<'py, PyAny>>,
    /// True if a thread is reading more records.
    pub(crate) reading: bool,
    /// Delivery times that were read from the records.
    pub(crate) admitted: Option<Admitted>,
}

/// Record batches in a Python bytes object.
struct Held<'py>(Bound<'py, PyBytes>);

impl AsRef<[u8]> for Held<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Reads a `sharecore.storage.Log`, directly from the store if it is there.
struct LogReader<'a, 'py> {
    access: &'a Bound<'py, PyLogAccess>,
    end: i64,
    tally: &'a Tally,
    reading: bool,
}

impl<'py> Log for LogReader<'_, 'py> {
    type Bytes = Held<'py>;
    type Error = PyErr;

    fn read(&mut self, want: Want) -> PyResult<Option<Part<Held<'py>>>> {
        let py = self.access.py();
        let stored = self
            .access
            .borrow()
            .stored
            .as_ref()
            .map(|it| it.clone_ref(py));
        if let Some(stored) = stored
            && let Some(part) = self.cached(stored.get(), want)?
        {
            return Ok(Some(part));
        }
        let arguments = (
            want.offset,
            want.max_bytes,
            want.max_records,
            want.at_least_one,
            self.end,
        );
        let found = self
            .access
            .call_method1(intern!(py, python::READ), arguments)?;
        if found.is_none() {
            self.reading = true;
            return Ok(None);
        }
        let (bytes, batches): (Bound<'py, PyBytes>, Bound<'py, PyAny>) = found.extract()?;
        Ok(Some(Part {
            bytes: Held(bytes),
            batches: ranges(&batches)?.into_iter().collect(),
        }))
    }

    fn aborted(&mut self, offsets: OffsetRange) -> PyResult<Vec<(i64, i64)>> {
        if !self.access.borrow().read_committed {
            return Ok(Vec::new());
        }
        let arguments = (offsets.first, offsets.last + 1);
        let aborted = intern!(self.access.py(), python::ABORTED);
        self.access.call_method1(aborted, arguments)?.extract()
    }

    fn leased(&mut self, acquired: &[Acquired]) {
        self.tally.acquired(acquired);
    }
}

impl<'py> LogReader<'_, 'py> {
    /// Reads records that the store has in memory.
    fn cached(&self, stored: &PyStoredLog, want: Want) -> PyResult<Option<Part<Held<'py>>>> {
        let offset = want.offset;
        let want = wanted(
            want.max_bytes,
            Some(self.end),
            want.at_least_one,
            want.max_records,
        );
        let slice = stored.store.get().0.read_cached(stored.id, offset, want);
        let Some(slice) = slice.map_err(|refusal| refused(self.access.py(), &refusal))? else {
            return Ok(None);
        };
        let new = |(first, last)| OffsetRange::new(first, last);
        let read = copied_cached(self.access.py(), slice)?;
        Ok(read.map(|(bytes, batches)| Part {
            bytes: Held(bytes),
            batches: batches.into_iter().map(new).collect(),
        }))
    }
}

/// Acquires up to the wanted records for a member.
pub(crate) fn lease<'py>(
    engine: &PyPartition,
    access: &Bound<'py, PyLogAccess>,
    request: &AcquireRequest<'_>,
) -> PyResult<Lease<'py>> {
    let py = access.py();
    let mut source = LogReader {
        access,
        end: request.end,
        tally: &engine.tally,
        reading: false,
    };
    let mut leased = lease_from(&engine.inner, &mut source, request);
    if leased.thinned > 0 {
        engine.tally.thinned(leased.thinned);
    }
    let stopped = match leased.stopped.take() {
        None => None,
        Some(Stop::Engine(failure)) => Some(kafka_error_in(py, failed(py, &failure))?),
        Some(Stop::Log(error)) => Some(kafka_error_in(py, error)?),
    };
    Ok(Lease {
        records: records(py, &leased)?,
        acquired: std::mem::take(&mut leased.acquired),
        total: leased.total,
        archived: leased.archived,
        stopped,
        reading: source.reading,
        admitted: leased.admitted,
    })
}

/// Concatenates the batches of all parts; a single bytes object is returned without a copy.
fn records<'py>(
    py: Python<'py>,
    leased: &Leased<Held<'py>, PyErr>,
) -> PyResult<Bound<'py, PyBytes>> {
    let whole = |bytes: &Held<'_>| bytes.as_ref().len() == leased.size;
    if let [(Source::Read(bytes), _)] = &leased.parts[..]
        && whole(bytes)
    {
        return Ok(bytes.0.clone());
    }
    PyBytes::new_with(py, leased.size, |mut out| {
        for (bytes, ranges) in &leased.parts {
            for range in ranges {
                let (here, rest) = out.split_at_mut(range.len());
                here.copy_from_slice(&bytes.as_ref()[range.clone()]);
                out = rest;
            }
        }
        Ok(())
    })
}
