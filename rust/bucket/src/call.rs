//! Requests to a bucket and their results.

use std::{ops::Range, sync::Arc};

/// The content of an object. Shared, because a call may be sent again with the same bytes.
pub type Body = Arc<Vec<u8>>;

/// A request that a transport carries out. The transport never retries it: who made the call decides what follows an
/// [`Answer::Unknown`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// Names the call in its answer; unique within one life of a store.
    pub id: u64,
    /// What to do.
    pub what: What,
}

/// What a call does. Names are relative to the prefix of the bucket's URL: the transport puts that in front of them, and
/// takes it off again from the names that a list returns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    /// Create an object only if the name is free (`If-None-Match: *`). `Done`, `Exists` or `Unknown`.
    Create {
        /// Its name.
        name: String,
        /// Its content.
        body: Body,
    },
    /// Write an object, whether or not it exists. Only for names below `nodes/`. `Done` or `Unknown`.
    Put {
        /// Its name.
        name: String,
        /// Its content.
        body: Body,
    },
    /// Read an object. `Bytes`, `Absent` or `Unknown`.
    Get {
        /// Its name.
        name: String,
        /// The bytes wanted, or all of them. A range that reaches beyond the end returns what is there.
        range: Option<Range<u64>>,
    },
    /// List objects whose names begin with `prefix` (a plain prefix: it need not end at a slash), in the order of their
    /// names. `Names` or `Unknown`. A page may hold any number of names, but an empty page means that there are no more.
    List {
        /// How the names begin.
        prefix: String,
        /// Only names greater than this one.
        after: Option<String>,
    },
    /// Delete an object. `Done`, also when it was absent, or `Unknown`.
    Delete {
        /// Its name.
        name: String,
    },
}

impl What {
    /// The kind of request, as metrics name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Put { .. } => "put",
            Self::Get { .. } => "get",
            Self::List { .. } => "list",
            Self::Delete { .. } => "delete",
        }
    }

    /// The name of the object, or the prefix of a list.
    pub fn name(&self) -> &str {
        match self {
            Self::Create { name, .. }
            | Self::Put { name, .. }
            | Self::Get { name, .. }
            | Self::Delete { name } => name,
            Self::List { prefix, .. } => prefix,
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The object was created, written or deleted.
    Done,
    /// The bucket answered that the name is taken: 412 with a complete, well-formed answer. It does not say by whom, and
    /// not that this call lost: an earlier attempt at the same call may have created the object.
    Exists,
    /// The bucket answered that there is no such object.
    Absent,
    /// The bytes of an object.
    Bytes(Vec<u8>),
    /// Names in ascending order, and sizes in bytes.
    Names(Vec<(String, u64)>),
    /// Anything else: a time-out, a reset connection, 403, 409, 500, 503. The call may have been carried out, or may be
    /// later. The text says why; it reaches logs and status pages, so it must not contain credentials.
    Unknown(String),
}

/// A bucket that answers at once: what tools work on (restore, check, status).
pub trait Bucket {
    /// Carry out a call and return its answer. One attempt: callers retry an [`Answer::Unknown`].
    fn ask(&mut self, what: What) -> Answer;

    /// Carry out calls that do not depend on each other, and return their answers in the same order. A transport that can
    /// have several requests under way does; by default it is one after the other.
    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        whats.into_iter().map(|what| self.ask(what)).collect()
    }
}

/// Return all names that begin with a prefix, and sizes in bytes; `page` returns the names of one list.
pub fn list_all<E>(
    prefix: &str,
    mut page: impl FnMut(What) -> Result<Vec<(String, u64)>, E>,
) -> Result<Vec<(String, u64)>, E> {
    let mut found: Vec<(String, u64)> = Vec::new();
    loop {
        let more = page(What::List {
            prefix: prefix.into(),
            after: found.last().map(|(name, _)| name.clone()),
        })?;
        if more.is_empty() {
            return Ok(found);
        }
        found.extend(more);
    }
}

impl<B: Bucket + ?Sized> Bucket for &mut B {
    fn ask(&mut self, what: What) -> Answer {
        (**self).ask(what)
    }

    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        (**self).ask_all(whats)
    }
}
