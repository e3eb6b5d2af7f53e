//! `sharecore._core.decode_records`: what a share fetch brought, as Python objects.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use sharecore_records::{Batch, Batches, Fault, Records, TimestampType};

use crate::record::{Header, PyRecord};

type Ranges = Vec<(i64, i64)>;
type Decoded<'py> = (Bound<'py, PyList>, Ranges, Ranges, Vec<(i64, i64, String)>);

/// Far more offsets than a broker lets one member hold in a range.
const OFFSETS_MAX: i64 = 1 << 31;

/// Whole batches that hold acquired offsets, expanded; and those that cannot be.
struct Expanded<'a> {
    batches: Vec<(Batch<'a>, std::borrow::Cow<'a, [u8]>)>,
    faults: Vec<(i64, i64, Fault)>,
    /// First offset that a batch cut off at the end may hold.
    cut_off_from: Option<i64>,
}

fn expand<'a>(data: &'a [u8], acquired: &[(i64, i64, i16)], limit: usize) -> Expanded<'a> {
    let mut expanded = Expanded {
        batches: Vec::new(),
        faults: Vec::new(),
        cut_off_from: None,
    };
    let mut rest = limit;
    let mut end = i64::MIN;
    let mut batches = Batches::new(data);
    for batch in &mut batches {
        let (first, last) = (batch.header.base_offset, batch.header.last_offset());
        end = end.max(last.saturating_add(1));
        let next = acquired.partition_point(|(_, to, _)| *to < first);
        if acquired.get(next).is_none_or(|(from, _, _)| *from > last) {
            continue;
        }
        match batch.expand(rest) {
            Ok(records) => {
                rest -= records.len().min(rest);
                expanded.batches.push((batch, records));
            }
            Err(fault) => expanded.faults.push((first, last, fault)),
        }
    }
    expanded.cut_off_from = (!batches.rest().is_empty()).then_some(end);
    expanded
}

/// Walks the acquired ranges in step with the records, which come in ascending order too.
struct Walk<'a> {
    acquired: &'a [(i64, i64, i16)],
    index: usize,
    /// Offsets in the ranges before `index`.
    before: usize,
    next: i64,
    missing: Ranges,
}

impl Walk<'_> {
    /// The position among all acquired offsets and the delivery count, where `offset` is acquired.
    fn take(&mut self, offset: i64) -> Option<(usize, i16)> {
        self.pass(offset);
        let (first, last, count) = *self.acquired.get(self.index)?;
        if offset < self.next || offset > last {
            return None;
        }
        self.next = offset + 1;
        Some((self.before + (offset - first) as usize, count))
    }

    /// Notes acquired offsets below `offset` that no record came for.
    fn pass(&mut self, offset: i64) {
        while let Some((first, last, _)) = self.acquired.get(self.index) {
            let from = self.next.max(*first);
            let to = (*last).min(offset - 1);
            if from <= to {
                self.missing.push((from, to));
            }
            self.next = from.max(to + 1);
            if self.next <= *last {
                return;
            }
            self.before += (last - first + 1) as usize;
            self.index += 1;
        }
    }
}

fn check(acquired: &[(i64, i64, i16)]) -> PyResult<()> {
    let inside = acquired
        .iter()
        .all(|(first, last, _)| 0 <= *first && first <= last && last - first < OFFSETS_MAX);
    if !inside || acquired.windows(2).any(|pair| pair[0].1 >= pair[1].0) {
        return Err(PyValueError::new_err(
            "acquired ranges must be bounded, ascend and not overlap",
        ));
    }
    Ok(())
}

fn overlap(ranges: &[(i64, i64)], first: i64, last: i64) -> impl Iterator<Item = (i64, i64)> {
    ranges
        .iter()
        .map(move |(from, to)| ((*from).max(first), (*to).min(last)))
        .filter(|(from, to)| from <= to)
}

/// The acquired records of one share partition in a `ShareFetch` response.
#[pyfunction]
#[pyo3(signature = (records, acquired, topic, partition, lease, *, expanded_bytes_max=1_073_741_824))]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
pub(crate) fn decode_records<'py>(
    py: Python<'py>,
    records: &[u8],
    acquired: Vec<(i64, i64, i16)>,
    topic: Bound<'py, PyString>,
    partition: i32,
    lease: Bound<'py, PyAny>,
    expanded_bytes_max: usize,
) -> PyResult<Decoded<'py>> {
    check(&acquired)?;
    let mut expanded = py.detach(|| expand(records, &acquired, expanded_bytes_max));
    let mut walk = Walk {
        acquired: &acquired,
        index: 0,
        before: 0,
        next: i64::MIN,
        missing: Vec::new(),
    };
    let mut found: Vec<Py<PyRecord>> = Vec::new();
    for (batch, content) in &expanded.batches {
        let header = &batch.header;
        if header.is_control() {
            continue;
        }
        let log_append_time = header.timestamp_type() == TimestampType::LogAppendTime;
        let shared = Shared {
            topic: &topic,
            partition,
            lease: &lease,
            log_append_time,
            leader_epoch: header.leader_epoch,
        };
        if let Err(fault) = read_batch(py, batch.records(content), &shared, &mut walk, &mut found)?
        {
            let first = walk.next.max(header.base_offset);
            expanded.faults.push((first, header.last_offset(), fault));
        }
    }
    walk.pass(i64::MAX);
    let missing = std::mem::take(&mut walk.missing);
    Ok((
        PyList::new(py, found)?,
        gaps(&missing, &expanded),
        expanded
            .cut_off_from
            .map_or_else(Vec::new, |from| overlap(&missing, from, i64::MAX).collect()),
        expanded
            .faults
            .iter()
            .flat_map(|(first, last, fault)| {
                overlap(&missing, *first, *last)
                    .map(move |(from, to)| (from, to, fault.to_string()))
            })
            .collect(),
    ))
}

/// What is missing only because the log does not have it.
fn gaps(missing: &[(i64, i64)], expanded: &Expanded<'_>) -> Ranges {
    let mut known: Ranges = expanded
        .faults
        .iter()
        .map(|(first, last, _)| (*first, *last))
        .collect();
    known.extend(expanded.cut_off_from.map(|from| (from, i64::MAX)));
    known.sort_unstable();
    let mut gaps = Vec::new();
    for (first, last) in missing {
        let mut from = *first;
        for (known_first, known_last) in &known {
            if *known_last < from || *known_first > *last {
                continue;
            }
            if from < *known_first {
                gaps.push((from, known_first - 1));
            }
            from = from.max(known_last.saturating_add(1));
        }
        if from <= *last {
            gaps.push((from, *last));
        }
    }
    gaps
}

/// Bytes of a key or value; -1 where there is none. A batch's lengths are 32 bits wide, so a field's fit.
fn size(field: Option<&[u8]>) -> i32 {
    field.map_or(-1, |field| i32::try_from(field.len()).unwrap_or(i32::MAX))
}

/// What all records of a batch have in common.
struct Shared<'a, 'py> {
    topic: &'a Bound<'py, PyString>,
    partition: i32,
    lease: &'a Bound<'py, PyAny>,
    log_append_time: bool,
    leader_epoch: i32,
}

fn read_batch(
    py: Python<'_>,
    records: Records<'_>,
    shared: &Shared<'_, '_>,
    walk: &mut Walk<'_>,
    found: &mut Vec<Py<PyRecord>>,
) -> PyResult<Result<(), Fault>> {
    let bytes =
        |field: Option<&[u8]>| field.map(|field| PyBytes::new(py, field).into_any().unbind());
    for record in records {
        let record = match record {
            Ok(record) => record,
            Err(fault) => return Ok(Err(fault)),
        };
        let headers = if record.headers.is_empty() {
            None
        } else {
            let owned = record
                .headers
                .clone()
                .map(|header| header.map(|(name, value)| (name, value.map(Box::from))));
            match owned.collect::<Result<Box<[Header]>, Fault>>() {
                Ok(headers) => Some(headers),
                Err(fault) => return Ok(Err(fault)),
            }
        };
        let Some((position, delivery_count)) = walk.take(record.offset) else {
            continue;
        };
        found.push(Py::new(
            py,
            PyRecord {
                topic: shared.topic.clone().unbind(),
                partition: shared.partition,
                offset: record.offset,
                timestamp: record.timestamp,
                log_append_time: shared.log_append_time,
                key: bytes(record.key),
                value: bytes(record.value),
                serialized_key_size: size(record.key),
                serialized_value_size: size(record.value),
                headers,
                delivery_count,
                leader_epoch: shared.leader_epoch,
                lease: shared.lease.clone().unbind(),
                position,
            },
        )?);
    }
    Ok(Ok(()))
}
