//! Requests about evicted segments: several at a time, and a thread waits for the answers.

use std::{
    fmt, io,
    ops::Range,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use sharecore_bucket::{Answer, What};

use super::EvictedSegments;

/// A read asks the bucket this often before it fails: the client retries.
pub(super) const ATTEMPTS: u32 = 2;
/// How often a thread that waits for the bucket checks whether the store closes.
const LOOK: Duration = Duration::from_millis(100);

/// Receives the answer to a request.
pub type Reply = Box<dyn FnOnce(Answer) + Send>;

/// Requests that are sent at the same time.
pub type Requests = Vec<(What, Reply)>;

/// Sends requests about evicted segments to the bucket.
#[derive(Clone)]
pub struct EvictedRequests(pub Arc<dyn Fn(Requests) + Send + Sync>);

impl fmt::Debug for EvictedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EvictedRequests")
    }
}

impl EvictedSegments {
    /// Request objects or parts of them at the same time. Errors name the object. Each answer comes with the time that
    /// it took. Each is requested up to `attempts` times.
    pub(super) fn get_all(
        &self,
        wanted: &[(String, Option<Range<u64>>)],
        attempts: u32,
    ) -> Vec<(io::Result<Vec<u8>>, Duration)> {
        let began = Instant::now();
        let (sender, answers) = mpsc::channel();
        let request = |at: usize, attempt: u32| {
            let (name, range) = wanted[at].clone();
            let sender = sender.clone();
            // nobody waits any more if the store closes
            let reply: Reply = Box::new(move |answer| drop(sender.send((at, attempt, answer))));
            (What::Get { name, range }, reply)
        };
        (self.requests.0)((0..wanted.len()).map(|at| request(at, 1)).collect());
        let mut found: Vec<Option<(io::Result<Vec<u8>>, Duration)>> = Vec::new();
        found.resize_with(wanted.len(), || None);
        while found.iter().any(Option::is_none) {
            let (at, attempt, answer) = match answers.recv_timeout(LOOK) {
                Ok(answered) => answered,
                Err(RecvTimeoutError::Timeout) if !self.is_closing.load(Ordering::Relaxed) => {
                    continue;
                }
                Err(_) => break,
            };
            let name = &wanted[at].0;
            let result = match answer {
                Answer::Bytes(bytes) => Ok(bytes),
                Answer::Absent => {
                    let what = format!("{name} is missing in the bucket");
                    Err(io::Error::new(io::ErrorKind::InvalidData, what))
                }
                _ if attempt < attempts && !self.is_closing.load(Ordering::Relaxed) => {
                    (self.requests.0)(vec![request(at, attempt + 1)]);
                    continue;
                }
                Answer::Unknown(why) => {
                    Err(io::Error::other(format!("the bucket: get {name}: {why}")))
                }
                other => {
                    let what = format!("the bucket: get {name}: {other:?}");
                    Err(io::Error::other(what))
                }
            };
            found[at] = Some((result, began.elapsed()));
        }
        let closing = || {
            let error = io::Error::other("the store is being closed");
            (Err(error), began.elapsed())
        };
        let found = found.into_iter();
        found.map(|it| it.unwrap_or_else(closing)).collect()
    }

    pub(super) fn get(&self, name: String) -> io::Result<Vec<u8>> {
        let found = self.get_all(&[(name, None)], ATTEMPTS).pop();
        found.expect("an answer for each request").0
    }
}
