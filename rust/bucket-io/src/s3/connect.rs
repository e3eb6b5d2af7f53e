//! The `object_store` client: endpoint, credentials, timeouts.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};

use super::refusal::NotingConnector;
use super::rules::Rules;
use crate::place::Settings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle time without a byte; a body may otherwise take as long as it needs.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Return the client; no request is sent yet.
pub(super) fn open(settings: &Settings, bucket: &str) -> Result<(AmazonS3, Rules), String> {
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        // the environment may have disabled conditional puts, which correctness depends on
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // one object at a time: not every server supports bulk deletes
        .with_disable_bulk_delete(true)
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        })
        .with_http_connector(NotingConnector::default());
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    let given = settings.endpoint.clone();
    let endpoint = given
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint))
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    let mut options = ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_read_timeout(READ_TIMEOUT);
    let mut is_untouched = true;
    if let Some(endpoint) = endpoint {
        let allows_http = check_endpoint(&endpoint, settings.allow_http)?;
        is_untouched = !allows_http || is_local(&endpoint);
        options = options.with_allow_http(allows_http);
        builder = builder
            .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint.clone())
            .with_endpoint(endpoint);
    }
    if is_untouched && std::env::var_os("AWS_UNSIGNED_PAYLOAD").is_none() {
        // TLS protects bodies on their way: a SHA-256 of each takes a third of a leader's CPU time at 100 MB/s
        builder = builder.with_unsigned_payload(true);
    }
    let failed = |error| format!("{}: {}", settings.place, innermost(&error));
    let region = builder.get_config_value(&AmazonS3ConfigKey::Region);
    let rules = Rules::new(&options, region.unwrap_or_else(|| "us-east-1".into()));
    let store = builder.with_client_options(options).build();
    Ok((store.map_err(failed)?, rules.map_err(failed)?))
}

/// Return whether the endpoint is plain HTTP; fail if it is invalid.
fn check_endpoint(endpoint: &str, allow_http: bool) -> Result<bool, String> {
    let uri: http::Uri = endpoint.parse().map_err(|_| {
        "the bucket's endpoint is not a URL; allowed: https://host[:port]".to_owned()
    })?;
    let host = uri.host().unwrap_or_default();
    if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        return Err("the bucket's endpoint contains a user name or password; credentials come from the environment".into());
    }
    match uri.scheme_str() {
        _ if host.is_empty() => Err(format!(
            "{endpoint}: the bucket's endpoint has no host; allowed: https://host[:port]"
        )),
        Some("https") => Ok(false),
        Some("http") if allow_http || is_loopback(host) => Ok(true),
        Some("http") => Err(format!(
            "{endpoint}: without TLS anyone on the network path can read the records. Use https, or allow plain HTTP (sharecore.bucket.allow.http=true, --allow-http)"
        )),
        _ => Err(format!(
            "{endpoint}: the bucket's endpoint is not a URL; allowed: https://host[:port]"
        )),
    }
}

fn is_local(endpoint: &str) -> bool {
    let uri = endpoint.parse::<http::Uri>().ok();
    uri.and_then(|uri| uri.host().map(is_loopback))
        .unwrap_or(false)
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Return the innermost cause of an error, without its wrappers.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Install ring unless rustls has a crypto provider already.
pub(super) fn use_ring() {
    // any other provider serves as well
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The shared store.
pub(super) type Store = Arc<AmazonS3>;
