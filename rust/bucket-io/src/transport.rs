//! Sends requests to a bucket of any kind.

use std::fmt;
use std::sync::mpsc;

use sharecore_bucket::probe::Rights;
use sharecore_bucket::{Answer, Bucket, Call, What};

#[cfg(feature = "cloud")]
use crate::cloud::Cloud;
use crate::directory::Directory;
use crate::place::{Place, Settings};

/// A callback for the answer to a call.
pub(crate) type Done = Box<dyn FnOnce(u64, Answer) + Send>;

/// A call and its callback.
pub(crate) struct Request {
    pub(crate) call: Call,
    pub(crate) done: Done,
}

/// Threads that send requests to one bucket. Dropping it ends them; requests in progress then get no answer.
pub struct Transport {
    kind: Kind,
    url: String,
    rights: Rights,
}

enum Kind {
    Directory(Directory),
    #[cfg(feature = "cloud")]
    Cloud(Cloud),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transport({})", self.url)
    }
}

impl Transport {
    /// Start the threads. No request is sent before the first call; invalid settings are an error.
    pub fn start(settings: &Settings) -> Result<Self, String> {
        let kind = match &settings.place {
            Place::Directory(root) => Kind::Directory(Directory::start(root)?),
            #[cfg(feature = "cloud")]
            _ => Kind::Cloud(Cloud::start(settings)?),
            #[cfg(not(feature = "cloud"))]
            place => return Err(without_clouds(place)),
        };
        Ok(Self {
            kind,
            url: settings.place.to_string(),
            rights: settings.place.rights(),
        })
    }

    /// The bucket's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The names of the permissions that requests need.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Send a request. `done` gets the call's ID and the answer on a transport thread, which it must not block.
    pub fn send(&self, call: Call, done: impl FnOnce(u64, Answer) + Send + 'static) {
        let request = Request {
            call,
            done: Box::new(done),
        };
        let refused = match &self.kind {
            Kind::Directory(directory) => directory.send(request),
            #[cfg(feature = "cloud")]
            Kind::Cloud(cloud) => cloud.send(request),
        };
        if let Err(Request { call, done }) = refused {
            done(call.id, ended());
        }
    }

    /// Return which lifecycle rule of the bucket deletes or archives its objects; None if none does, or the rules cannot
    /// be read.
    pub fn harmful_rule(&self) -> Option<String> {
        match &self.kind {
            Kind::Directory(_) => None,
            #[cfg(feature = "cloud")]
            Kind::Cloud(cloud) => cloud.harmful_rule(),
        }
    }

    /// Send a request and wait for its answer.
    pub fn wait(&self, what: What) -> Answer {
        let (sender, answer) = mpsc::sync_channel(1);
        self.send(Call { id: 0, what }, move |_, answer| {
            // the caller is gone
            let _ = sender.send(answer);
        });
        answer.recv().unwrap_or_else(|_| ended())
    }
}

impl Bucket for Transport {
    fn ask(&mut self, what: What) -> Answer {
        self.wait(what)
    }

    fn ask_all(&mut self, whats: Vec<What>) -> Vec<Answer> {
        let count = whats.len();
        let (sender, answered) = mpsc::channel();
        for (at, what) in whats.into_iter().enumerate() {
            let sender = sender.clone();
            // the caller is gone
            let done = move |at, answer| drop(sender.send((at, answer)));
            self.send(
                Call {
                    id: at as u64,
                    what,
                },
                done,
            );
        }
        drop(sender);
        let mut answers = vec![ended(); count];
        for (at, answer) in answered {
            answers[at as usize] = answer;
        }
        answers
    }
}

fn ended() -> Answer {
    Answer::Unknown("the thread that sends requests to the bucket has ended".into())
}

#[cfg(not(feature = "cloud"))]
fn without_clouds(place: &Place) -> String {
    format!(
        "{place}: this build of sharecore cannot reach {}. Install the released wheel (pip install sharecore), \
         or build one: maturin build --release",
        place.store()
    )
}
