//! Stores in a cloud, and compatible servers: one thread that runs tokio and `object_store`.

mod answer;
mod azure;
mod connect;
mod gcs;
mod refusal;
mod requests;
mod rules;
mod s3;

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use tokio::runtime;
use tokio::sync::{Semaphore, mpsc};

use crate::place::{Place, Settings};
use crate::transport::Request;
use connect::Store;
use requests::Objects;
use rules::Rules;

/// Concurrent requests; more wait in order.
const UNDER_WAY_MAX: usize = 64;

enum Job {
    Request(Request),
    /// Say which lifecycle rule of the bucket is harmful.
    Rules(std::sync::mpsc::SyncSender<Option<String>>),
}

/// The thread that sends requests.
pub(crate) struct Cloud {
    requests: Option<mpsc::UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Cloud {
    pub(crate) fn start(settings: &Settings) -> Result<Self, String> {
        connect::use_ring();
        let mut rules = None;
        let (store, no_credentials, prefix): (Store, _, _) = match &settings.place {
            Place::Directory(_) => return Err(format!("{} is in no cloud", settings.place)),
            Place::S3 { bucket, prefix } => {
                let (store, found) = s3::open(settings, bucket)?;
                rules = Some(found);
                (store, s3::NO_CREDENTIALS, prefix)
            }
            Place::Gcs { bucket, prefix } => {
                let store = gcs::open(settings, bucket)?;
                (Arc::new(store), gcs::NO_CREDENTIALS, prefix)
            }
            Place::Azure {
                account,
                container,
                prefix,
            } => {
                let store = azure::open(settings, account, container)?;
                (Arc::new(store), azure::NO_CREDENTIALS, prefix)
            }
        };
        let objects = Objects {
            store,
            no_credentials,
            prefix: prefix.to_owned(),
        };
        let failed = |error| {
            format!(
                "{}: cannot start a thread for the bucket: {error}",
                settings.place
            )
        };
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (requests, queue) = mpsc::unbounded_channel();
        let thread = Builder::new()
            .name("sharecore-bucket".into())
            .spawn(move || {
                runtime.block_on(send_all(objects, rules, queue));
                // do not wait for DNS lookups in progress
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// Queue a request; return it if the thread has ended.
    pub(crate) fn send(&self, request: Request) -> Result<(), Request> {
        match &self.requests {
            Some(requests) => requests.send(Job::Request(request)).map_err(|refused| {
                let Job::Request(request) = refused.0 else {
                    unreachable!("it was one");
                };
                request
            }),
            None => Err(request),
        }
    }

    /// Return which lifecycle rule of the bucket is harmful, if any is known.
    pub(crate) fn harmful_rule(&self) -> Option<String> {
        let (reply, found) = std::sync::mpsc::sync_channel(1);
        self.requests.as_ref()?.send(Job::Rules(reply)).ok()?;
        found.recv().ok()?
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // a panic has already been printed
            let _ = thread.join();
        }
    }
}

async fn send_all(objects: Objects, rules: Option<Rules>, mut queue: mpsc::UnboundedReceiver<Job>) {
    let slots = Arc::new(Semaphore::new(UNDER_WAY_MAX));
    while let Some(job) = queue.recv().await {
        let Request { call, done } = match job {
            Job::Request(request) => request,
            Job::Rules(reply) => {
                let (prefix, rules) = (objects.prefix.clone(), rules.clone());
                tokio::spawn(async move {
                    let found = match rules {
                        Some(rules) => rules.harmful(&prefix).await,
                        None => None,
                    };
                    // who asked may have gone
                    let _ = reply.send(found);
                });
                continue;
            }
        };
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        let objects = objects.clone();
        tokio::spawn(async move {
            let answer = objects.answer(call.what).await;
            drop(slot);
            done(call.id, answer);
        });
    }
}
