//! Lifecycle rules of a bucket of S3, which must not delete or archive objects of a home.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use object_store::ClientOptions;
use object_store::aws::{AmazonS3, AwsAuthorizer};
use object_store::client::{
    HttpClient, HttpConnector, HttpRequest, HttpRequestBody, ReqwestConnector,
};
use object_store::path::Path;
use object_store::signer::Signer;
use sharecore_bucket::names;

/// More than S3 allows: 1,000 rules.
const BYTES_MAX: usize = 4 << 20;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the rules of a bucket.
#[derive(Clone)]
pub(super) struct Rules {
    store: Arc<AmazonS3>,
    client: HttpClient,
    region: String,
}

impl Rules {
    pub(super) fn new(
        store: Arc<AmazonS3>,
        options: &ClientOptions,
        region: String,
    ) -> object_store::Result<Self> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(Self {
            store,
            client,
            region,
        })
    }

    /// Return which rule deletes or archives objects below a prefix; None if none does, or the rules cannot be read.
    pub(super) async fn harmful(&self, prefix: &str) -> Option<String> {
        let document = tokio::time::timeout(ANSWER_TIMEOUT, self.read())
            .await
            .ok()??;
        harmful(&document, prefix)
    }

    async fn read(&self) -> Option<String> {
        // the only way to learn the address: signed for an object of the bucket
        let url = self
            .store
            .signed_url(Method::GET, &Path::from("x"), Duration::from_secs(1))
            .await
            .ok()?;
        let endpoint = url.as_str().split_once("/x?")?.0.to_owned();
        let credential = self.store.credentials().get_credential().await.ok()?;
        let mut request: HttpRequest = http::Request::builder()
            .method(Method::GET)
            .uri(format!("{endpoint}?lifecycle="))
            .body(HttpRequestBody::empty())
            .ok()?;
        let authorizer = AwsAuthorizer::new(&credential, "s3", &self.region);
        authorizer.try_authorize(&mut request, None).ok()?;
        let response = self.client.execute(request).await.ok()?;
        if !response.status().is_success() {
            // none, or no right to read them, or a server without rules
            return None;
        }
        let body = response.into_body().bytes().await.ok()?;
        (body.len() <= BYTES_MAX).then(|| String::from_utf8_lossy(&body).into_owned())
    }
}

/// Return which rule of a document deletes or archives objects below a prefix.
fn harmful(document: &str, prefix: &str) -> Option<String> {
    let own = if prefix.is_empty() {
        String::new()
    } else {
        format!("{prefix}/")
    };
    elements(document, "Rule").find_map(|rule| {
        let is_enabled = elements(rule, "Status").any(|it| it.trim() == "Enabled");
        // objects of a home have no tags
        let is_for_tags = elements(rule, "Tag").next().is_some();
        let below = elements(rule, "Prefix").next().map_or("", str::trim);
        // a probe's objects may go at any time
        let is_ours = names::KEPT.iter().chain([&names::FORMAT]).any(|name| {
            let name = format!("{own}{name}");
            name.starts_with(below) || below.starts_with(&name)
        });
        let deletes = elements(rule, "Expiration")
            .any(|it| it.contains("<Days>") || it.contains("<Date>"));
        // of these the next read takes hours, and a request
        let archives = elements(rule, "Transition").any(|it| {
            elements(it, "StorageClass").any(|class| matches!(class.trim(), "GLACIER" | "DEEP_ARCHIVE"))
        });
        if !is_enabled || is_for_tags || !is_ours || !(deletes || archives) {
            return None;
        }
        let id = elements(rule, "ID").next().map_or("without a name", str::trim);
        let name: String = id.chars().filter(|it| !it.is_control()).take(100).collect();
        let does = if deletes { "deletes" } else { "archives" };
        Some(format!(
            "the bucket's lifecycle rule {name} {does} objects below {own}: remove the rule, or limit it to other prefixes"
        ))
    })
}

/// Return the contents of the elements with a name, which are not nested.
fn elements<'a>(document: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = document;
    std::iter::from_fn(move || {
        let begin = rest.find(&open)? + open.len();
        let length = rest[begin..].find(&close)?;
        let found = &rest[begin..begin + length];
        rest = &rest[begin + length + close.len()..];
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(prefix: &str, does: &str) -> String {
        format!(
            "<LifecycleConfiguration><Rule><ID>tidy</ID><Filter><Prefix>{prefix}</Prefix></Filter><Status>Enabled</Status>{does}</Rule></LifecycleConfiguration>"
        )
    }

    const DELETES: &str = "<Expiration><Days>30</Days></Expiration>";

    #[test]
    fn rules_that_delete_or_archive_objects_of_the_home_are_harmful() {
        for prefix in ["", "q", "queue", "queue/", "queue/segments/"] {
            let found = harmful(&rule(prefix, DELETES), "queue").expect(prefix);
            assert!(
                found.contains("rule tidy deletes objects below queue/"),
                "{found}"
            );
        }
        let archives =
            "<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>";
        let found = harmful(&rule("", archives), "").expect("of the whole bucket");
        assert!(found.contains("rule tidy archives objects"), "{found}");
        let first = rule("other/", DELETES);
        let both = first.replace("</LifecycleConfiguration>", "") + &rule("", DELETES);
        assert!(harmful(&both, "queue").is_some(), "the second one");
    }

    #[test]
    fn other_rules_are_not() {
        let cheaper =
            "<Transition><Days>30</Days><StorageClass>STANDARD_IA</StorageClass></Transition>";
        let old = "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>";
        let parts = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>";
        let markers =
            "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>";
        let tagged = format!("<Tag><Key>a</Key><Value>b</Value></Tag>{DELETES}");
        for does in [cheaper, old, parts, markers, &tagged, ""] {
            assert_eq!(harmful(&rule("", does), "queue"), None, "{does}");
        }
        assert_eq!(harmful(&rule("queues/", DELETES), "queue"), None);
        // the home is the whole bucket, or the rule is for what a probe could not delete
        assert_eq!(harmful(&rule("logs/", DELETES), ""), None);
        assert_eq!(harmful(&rule("queue/probe/", DELETES), "queue"), None);
        assert!(harmful(&rule("segments/", DELETES), "").is_some());
        let off = rule("", DELETES).replace("Enabled", "Disabled");
        assert_eq!(harmful(&off, "queue"), None);
        assert_eq!(
            harmful(
                "<Error><Code>NoSuchLifecycleConfiguration</Code></Error>",
                "queue"
            ),
            None
        );
        assert_eq!(harmful("<Rule><Status>", "queue"), None);
    }
}
