//! Operations waiting to be committed.

use std::sync::Arc;

use crate::{
    LogId, batch::Header, cleaner::Replacement, frame::Op, index::Block, producer::Undo,
    store::Change,
};

/// An operation waiting to be committed.
pub(crate) enum Pending {
    Append {
        log: LogId,
        now_ms: i64,
        header: Header,
        batch: Arc<[u8]>,
        undo: Option<Undo>,
    },
    LogStart {
        log: LogId,
        offset: i64,
    },
    Catalog(Vec<Change>),
    Replace(Replace),
    Clean(Arc<Replacement>),
}

/// Segments to replace with one that holds their live batches.
pub(crate) struct Replace {
    pub(crate) removed: Vec<u64>,
    pub(crate) added: Option<(u64, Vec<Block>)>,
}

impl Pending {
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Append { batch, .. } => batch.len() + 256,
            Self::LogStart { .. } => 64,
            Self::Catalog(changes) => changes.iter().map(Change::weight).sum(),
            Self::Replace(replace) => 8 * replace.removed.len() + 64,
            Self::Clean(replacement) => replacement.weight(),
        }
    }

    pub(crate) fn ops<'a>(&'a self, into: &mut Vec<Op<'a>>) {
        match self {
            Self::Append {
                log, now_ms, batch, ..
            } => into.push(Op::Append {
                log: *log,
                now_ms: *now_ms,
                batch,
            }),
            Self::LogStart { log, offset } => into.push(Op::LogStart {
                log: *log,
                offset: *offset,
            }),
            Self::Catalog(changes) => into.extend(changes.iter().map(|change| match change {
                Change::Put(key, value) => Op::Put { key, value },
                Change::Delete(key) => Op::Delete { key },
                Change::CreateLog(log) => Op::CreateLog { log: *log },
                Change::DropLog(log) => Op::DropLog { log: *log },
            })),
            Self::Replace(replace) => into.push(Op::Segments {
                added: replace.added.iter().map(|(id, _)| *id).collect(),
                removed: replace.removed.clone(),
            }),
            Self::Clean(replacement) => into.push(Op::Clean(replacement.record())),
        }
    }
}
