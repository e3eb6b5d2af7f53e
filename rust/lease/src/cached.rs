//! Acquires records of cached batches, without a read of the log.

use std::sync::Arc;

use sharecore_engine::{AcquireOptions, Acquired, Engine, OffsetRange};
use sharecore_guard::Guarded;

use crate::{
    AcquireRequest, Leased, Log, LogCache, Source, Stop, Want, indexed::IndexedBatch,
    thinned::thinned_from,
};

/// Acquires records of cached batches and adds them to `leased`; returns the last offset of these batches. `None` if the
/// log has to be read: the first wanted record is in no cached batch, or transactions were aborted there.
pub(crate) fn take_cached<L: Log>(
    engine: &Guarded,
    log: &mut L,
    request: &AcquireRequest<'_>,
    leased: &mut Leased<L::Bytes, L::Error>,
    (want, options): (Want, AcquireOptions),
) -> Result<Option<i64>, Stop<L::Error>> {
    let Some(log_cache) = request.log_cache.filter(|log_cache| log_cache.is_read) else {
        return Ok(None);
    };
    if !log_cache.holds(want.offset) {
        return Ok(None);
    }
    let read = OffsetRange::new(want.offset, want.offset + want.max_records - 1);
    if !log.aborted(read).map_err(Stop::Log)?.is_empty() {
        return Ok(None);
    }
    let Some(found) = lease_cached(engine, request, log_cache, want, options)? else {
        return Ok(None);
    };
    log.leased(&found.acquired);
    let batches = (&found.batches[..], &found.offsets[..]);
    let (bytes, whole) = thinned_from(batches, &found.acquired, log_cache);
    leased.thinned += whole - bytes.len();
    let ranges = std::iter::once(0..bytes.len()).collect();
    leased.put(Source::Anew(bytes), ranges, found.acquired);
    Ok(Some(found.read_to))
}

/// Records acquired from cached batches.
struct Cached {
    batches: Vec<Arc<IndexedBatch>>,
    /// The offsets of each batch.
    offsets: Vec<OffsetRange>,
    acquired: Vec<Acquired>,
    /// The last offset of the last batch.
    read_to: i64,
}

/// Acquires records of cached batches; `None` if the first wanted record is in none. Only for examined records: nothing
/// between two batches can be acquired, as long as no available record lies there.
fn lease_cached<E>(
    engine: &Guarded,
    request: &AcquireRequest<'_>,
    log_cache: LogCache<'_>,
    want: Want,
    options: AcquireOptions,
) -> Result<Option<Cached>, Stop<E>> {
    let reach = (want.offset + want.max_records - 1).min(request.end - 1);
    let acquire = |engine: &mut Engine| {
        engine.spec()?;
        let (batches, misses) =
            log_cache.batches((request.log_start, want.offset), |bytes, batch| {
                let has_room = bytes + batch.bytes().len() as i64 <= want.max_bytes;
                let is_wanted = has_room || bytes == 0 && want.at_least_one;
                let next = engine.next_ready_from(batch.offsets().last + 1);
                let next = next.filter(|next| *next <= reach);
                (is_wanted && batch.offsets().last < request.end, next)
            });
        if misses && engine.has_runs() {
            // the rest of a run would wait
            return None;
        }
        let offsets: Vec<_> = batches.iter().map(|batch| batch.offsets()).collect();
        let read_to = offsets.last()?.last;
        let mut acquired = Vec::new();
        engine.acquire(
            request.now_ms,
            request.member,
            &offsets,
            options,
            &mut acquired,
        );
        (!acquired.is_empty()).then_some(Cached {
            batches,
            offsets,
            acquired,
            read_to,
        })
    };
    engine.with(acquire).map_err(Stop::Engine)
}
