//! Requests to a bucket and their results.

use std::{ops::Range, sync::Arc, thread, time::Duration};

/// The content of an object. Shared, because retries send the same bytes.
pub type Body = Arc<Vec<u8>>;

/// A request for a transport, which never retries it: the caller decides what follows an [`Answer::Unknown`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// Identifies the call in its answer; unique during one run of a store.
    pub id: u64,
    /// The request.
    pub what: What,
}

/// A request. Names are relative to the prefix of the bucket's URL: the transport adds it, and removes it from listed
/// names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    /// Create an object unless the name exists (`If-None-Match: *`). `Done`, `Exists` or `Unknown`.
    Create {
        /// Its name.
        name: String,
        /// Its content.
        body: Body,
    },
    /// Write or overwrite an object. Only for names below `nodes/`. `Done` or `Unknown`.
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
        /// The requested bytes, or all of them. A range beyond the end returns the available part.
        range: Option<Range<u64>>,
    },
    /// List objects whose names begin with `prefix` (a plain prefix: it need not end at a slash), in name order.
    /// `Names` or `Unknown`. A page of fewer than [`PAGE_MIN`] names is the last one.
    List {
        /// The name prefix.
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

/// A page of a list has at least so many names, unless it is the last one: so a short list is one request, which costs as
/// much as a write.
pub const PAGE_MIN: usize = 100;

impl What {
    /// The kind of request, as in metrics.
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

/// Before the second attempt of a call; it doubles.
const PAUSE: Duration = Duration::from_millis(100);

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The object was created, written or deleted.
    Done,
    /// The bucket answered that the name is taken: a 412 with a complete, well-formed body. It does not say by whom: an
    /// earlier attempt at the same call may have created the object.
    Exists,
    /// The bucket answered that the object does not exist.
    Absent,
    /// The bytes of an object.
    Bytes(Vec<u8>),
    /// Names in ascending order, and sizes in bytes.
    Names(Vec<(String, u64)>),
    /// Anything else: a timeout, a reset connection, 403, 409, 500, 503. The call may have been carried out, or may
    /// still be. The reason appears in logs and status pages, so it must not contain credentials.
    Unknown(String),
}

/// A synchronous bucket for tools (restore, check, status).
pub trait Bucket {
    /// Make a call and return its answer. One attempt: callers retry an [`Answer::Unknown`].
    fn ask(&mut self, what: What) -> Answer;

    /// Make independent calls and return their answers in the same order. A transport with concurrent requests makes
    /// them at once; the default makes them one by one.
    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        whats.into_iter().map(|what| self.ask(what)).collect()
    }

    /// Wait before a call is made again; a simulation lets its own time pass.
    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

/// Make independent calls, again those without a definite answer, after growing pauses. After so many attempts, return
/// the index of a call and why it has no answer.
pub fn ask_until_definite(
    bucket: &mut dyn Bucket,
    whats: &[What],
    attempts: u32,
) -> Result<Vec<Answer>, (usize, String)> {
    let mut answers = bucket.ask_all(whats.to_vec());
    for attempt in 1.. {
        let open = answers.iter().enumerate().filter_map(|(at, answer)| {
            let Answer::Unknown(why) = answer else {
                return None;
            };
            Some((at, why))
        });
        let open: Vec<(usize, &String)> = open.collect();
        match open.first() {
            None => break,
            Some((at, why)) if attempt == attempts => return Err((*at, (*why).clone())),
            Some(_) => {}
        }
        let open: Vec<usize> = open.into_iter().map(|(at, _)| at).collect();
        bucket.pause(PAUSE * 2_u32.pow(attempt - 1));
        let again = open.iter().map(|at| whats[*at].clone()).collect();
        for (at, answer) in open.into_iter().zip(bucket.ask_all(again)) {
            answers[at] = answer;
        }
    }
    Ok(answers)
}

/// Return all names with a prefix, and their sizes in bytes; `page` returns the names of one list.
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
        let is_last = more.len() < PAGE_MIN;
        found.extend(more);
        if is_last {
            return Ok(found);
        }
    }
}

impl<B: Bucket + ?Sized> Bucket for &mut B {
    fn ask(&mut self, what: What) -> Answer {
        (**self).ask(what)
    }

    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        (**self).ask_all(whats)
    }

    fn pause(&mut self, time: Duration) {
        (**self).pause(time);
    }
}
