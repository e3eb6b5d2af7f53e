//! Decides where a fetch reads next.

use std::sync::Arc;

use sharecore_engine::{Engine, Spec};

use crate::AcquireRequest;

/// The next read.
pub(crate) enum Next {
    /// Nothing.
    Nothing,
    /// Records known to the engine, or admitted unread: offset, whether the records there are near their delivery
    /// limit, and how far.
    Known(i64, bool, i64),
    /// As `Known`, of a group whose records are examined first: those that can be acquired may lie far apart.
    Examined(i64, bool, i64),
    /// Records to examine first: offset, and how many at most.
    Unseen(Arc<Spec>, i64, i64),
}

/// Decides the next read of a fetch for `left` more records.
pub(crate) fn next(
    engine: &mut Engine,
    request: &AcquireRequest<'_>,
    left: i64,
    read_to: i64,
) -> Next {
    let spec = engine.spec().cloned();
    if spec.is_some() {
        engine.come_up(request.now_ms, request.wall_ms);
    }
    if !engine.can_acquire() {
        return Next::Nothing;
    }
    let next = match &spec {
        None => Some(engine.next_fetch_offset()),
        Some(_) => engine.next_ready(),
    };
    let offset = next.map(|next| next.max(request.log_start));
    let offset = offset.filter(|offset| *offset < request.end && *offset > read_to);
    let Some(offset) = offset else {
        return match (spec, engine.next_admission()) {
            (Some(spec), Some((offset, room))) if offset.max(request.log_start) < request.end => {
                Next::Unseen(spec, offset, room)
            }
            _ => Next::Nothing,
        };
    };
    let run_max = engine.run_max();
    let to = offset.saturating_add(left.min(run_max.unwrap_or(left)) - 1);
    engine.line_up(left, to);
    let is_slow = engine.is_slow(offset);
    if spec.is_some() {
        return Next::Examined(offset, is_slow, engine.last_ready(offset, to));
    }
    let reach = if request.record_limit || run_max.is_some() {
        to
    } else {
        engine.batch_end(to)
    };
    Next::Known(offset, is_slow, reach)
}
