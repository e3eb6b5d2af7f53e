//! S3 and compatible servers: one thread that runs tokio and `object_store`.

mod answer;
mod connect;
mod refusal;
mod requests;

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use tokio::runtime;
use tokio::sync::{Semaphore, mpsc};

use crate::place::Settings;
use crate::transport::Request;
use requests::Objects;

/// Concurrent requests; more wait in order.
const UNDER_WAY_MAX: usize = 64;

/// The thread that sends requests.
pub(crate) struct S3 {
    requests: Option<mpsc::UnboundedSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl S3 {
    pub(crate) fn start(settings: &Settings, bucket: &str, prefix: &str) -> Result<Self, String> {
        connect::use_ring();
        let objects = Objects {
            store: Arc::new(connect::open(settings, bucket)?),
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
                runtime.block_on(send_all(objects, queue));
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
            Some(requests) => requests.send(request).map_err(|refused| refused.0),
            None => Err(request),
        }
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // a panic has already been printed
            let _ = thread.join();
        }
    }
}

async fn send_all(objects: Objects, mut queue: mpsc::UnboundedReceiver<Request>) {
    let slots = Arc::new(Semaphore::new(UNDER_WAY_MAX));
    while let Some(Request { call, done }) = queue.recv().await {
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
