//! S3 and compatible servers.

use std::sync::Arc;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};

use super::connect::{client_options, is_local, no_retries, not_built};
use super::refusal::NotingConnector;
use super::rules::Rules;
use crate::place::Settings;

/// The machine has no role to ask for credentials.
pub(super) const NO_CREDENTIALS: &str = "no credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run on a machine with a role";

/// Return the client; no request is sent yet.
pub(super) fn open(settings: &Settings, bucket: &str) -> Result<(Arc<AmazonS3>, Rules), String> {
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        // the environment may have disabled conditional puts, which correctness depends on
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // one object at a time: not every server supports bulk deletes
        .with_disable_bulk_delete(true)
        .with_retry(no_retries())
        .with_http_connector(NotingConnector::default());
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    let given = settings.endpoint.clone();
    let endpoint = given
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint))
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    let options = client_options(settings, endpoint.as_deref())?;
    let is_untouched = endpoint
        .as_ref()
        .is_none_or(|endpoint| endpoint.starts_with("https:") || is_local(endpoint));
    if is_untouched && std::env::var_os("AWS_UNSIGNED_PAYLOAD").is_none() {
        // TLS protects bodies on their way: a SHA-256 of each takes a third of a leader's CPU time at 100 MB/s
        builder = builder.with_unsigned_payload(true);
    }
    if let Some(endpoint) = endpoint {
        builder = builder
            .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint.clone())
            .with_endpoint(endpoint);
    }
    let region = builder.get_config_value(&AmazonS3ConfigKey::Region);
    let failed = |error| not_built(settings, &error);
    let built = builder.with_client_options(options.clone()).build();
    let store = Arc::new(built.map_err(failed)?);
    let region = region.unwrap_or_else(|| "us-east-1".into());
    let rules = Rules::new(store.clone(), &options, region).map_err(failed)?;
    Ok((store, rules))
}
