//! Sends requests through `object_store`, and converts their results.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectStoreExt, PutMode, PutOptions};
use sharecore_bucket::{Answer, Body, PAGE_MIN, What};

use super::answer::{Failure, failure};
use super::connect::Store;
use super::refusal::{REFUSAL, Refusal};

/// A request times out after this long, plus one second per this many bytes; its outcome is then unknown.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const BYTES_PER_SECOND_MIN: usize = 256 << 10;
/// Names per page of a list, as in S3 and Google Cloud Storage.
const PAGE: usize = 1000;
const _: () = assert!(PAGE >= PAGE_MIN);

/// The objects below a prefix.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) store: Store,
    /// What to say if the machine's role provides no credentials.
    pub(super) no_credentials: &'static str,
    pub(super) prefix: String,
}

impl Objects {
    /// Send a request once, and return its outcome.
    pub(super) async fn answer(&self, what: What) -> Answer {
        let action = format!("{} {}", what.kind(), self.full_name(what.name()));
        let is_delete = matches!(what, What::Delete { .. });
        let body_bytes = match &what {
            What::Create { body, .. } | What::Put { body, .. } => body.len(),
            _ => 0,
        };
        let limit =
            ANSWER_TIMEOUT + Duration::from_secs((body_bytes / BYTES_PER_SECOND_MIN) as u64);
        let attempt = async {
            let result = self.attempt(what).await;
            let refusal = REFUSAL.with(|seen| seen.borrow_mut().take());
            self.settle(result, refusal.as_ref(), &action, is_delete)
        };
        let noting = REFUSAL.scope(RefCell::new(None), attempt);
        tokio::time::timeout(limit, noting)
            .await
            .unwrap_or_else(|_| {
                Answer::Unknown(format!("{action}: no answer within {} s", limit.as_secs()))
            })
    }

    async fn attempt(&self, what: What) -> Result<Answer, Error> {
        match what {
            What::Create { name, body } => self.put(&name, body, PutMode::Create).await,
            What::Put { name, body } => self.put(&name, body, PutMode::Overwrite).await,
            What::Get { name, range } => self.get(&name, range).await,
            What::List { prefix, after } => self.list(&prefix, after.as_deref()).await,
            What::Delete { name } => {
                self.store.delete(&self.path(&name)?).await?;
                Ok(Answer::Done)
            }
        }
    }

    async fn put(&self, name: &str, body: Body, mode: PutMode) -> Result<Answer, Error> {
        let options = PutOptions::from(mode);
        let bytes = Bytes::from_owner(Owned(body));
        self.store
            .put_opts(&self.path(name)?, bytes.into(), options)
            .await?;
        Ok(Answer::Done)
    }

    async fn get(&self, name: &str, range: Option<Range<u64>>) -> Result<Answer, Error> {
        let options = GetOptions {
            range: range.map(Into::into),
            ..GetOptions::default()
        };
        let found = self.store.get_opts(&self.path(name)?, options).await?;
        Ok(Answer::Bytes(found.bytes().await?.into()))
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Answer, Error> {
        // object_store lists whole folders; the rest of the prefix is filtered here
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let below = self.full_name(folder);
        let below = (!below.is_empty())
            .then(|| Path::parse(&below))
            .transpose()?;
        let mut objects = match after {
            Some(after) => self
                .store
                .list_with_offset(below.as_ref(), &self.path(after)?),
            None => self.store.list(below.as_ref()),
        };
        let mut names = Vec::new();
        while names.len() < PAGE
            && let Some(object) = objects.next().await
        {
            let object = object?;
            let full = object.location.as_ref();
            let name = if self.prefix.is_empty() {
                full
            } else {
                let rest = full.strip_prefix(&self.prefix);
                rest.and_then(|rest| rest.strip_prefix('/')).unwrap_or("")
            };
            if name.starts_with(prefix) && after.is_none_or(|after| name > after) {
                names.push((name.to_owned(), object.size));
            }
        }
        names.sort_unstable();
        Ok(Answer::Names(names))
    }

    fn path(&self, name: &str) -> Result<Path, Error> {
        Ok(Path::parse(self.full_name(name))?)
    }

    fn full_name(&self, name: &str) -> String {
        match (self.prefix.is_empty(), name.is_empty()) {
            (true, _) => name.to_owned(),
            (false, true) => self.prefix.clone(),
            (false, false) => format!("{}/{name}", self.prefix),
        }
    }

    fn settle(
        &self,
        result: Result<Answer, Error>,
        refusal: Option<&Refusal>,
        action: &str,
        is_delete: bool,
    ) -> Answer {
        match result {
            Ok(answer) => answer,
            // a range beyond the end of the object is empty
            Err(_) if refusal.is_some_and(|r| r.status == 416) => Answer::Bytes(Vec::new()),
            Err(error) => match failure(&error, refusal, action, self.no_credentials) {
                Failure::Exists => Answer::Exists,
                // some servers report that there was nothing to delete
                Failure::Absent if is_delete => Answer::Done,
                Failure::Absent => Answer::Absent,
                Failure::Unknown(why) => Answer::Unknown(why),
            },
        }
    }
}

/// An object's body, shared with the sender.
struct Owned(Body);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
