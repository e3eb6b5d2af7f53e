//! What the `object_store` clients have in common: endpoint, timeouts, one attempt for each request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use object_store::{ClientOptions, ObjectStore, RetryConfig};

use crate::place::Settings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle time without a byte; a body may otherwise take as long as it needs.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Return the options of a client of this endpoint, if there is one; fail if it is invalid.
pub(super) fn client_options(
    settings: &Settings,
    endpoint: Option<&str>,
) -> Result<ClientOptions, String> {
    let is_plain = match endpoint {
        Some(endpoint) => check_endpoint(endpoint, settings.allow_http)?,
        None => false,
    };
    let options = ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_read_timeout(READ_TIMEOUT);
    Ok(options.with_allow_http(is_plain))
}

/// Each request is sent once.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}

/// Describe a client that cannot be built, without the values of its settings.
pub(super) fn not_built(settings: &Settings, error: &object_store::Error) -> String {
    format!("{}: {}", settings.place, innermost(error))
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
    if uri.query().is_some() {
        return Err("the bucket's endpoint contains a query, such as a signature; credentials come from the environment".into());
    }
    match uri.scheme_str() {
        _ if host.is_empty() => {
            Err("the bucket's endpoint has no host; allowed: https://host[:port]".into())
        }
        Some("https") => Ok(false),
        Some("http") if allow_http || is_loopback(host) => Ok(true),
        Some("http") => Err(format!(
            "http://{host}: without TLS anyone on the network path can read the records. Use https, or allow plain HTTP (sharecore.bucket.allow.http=true, --allow-http)"
        )),
        // it may be a connection string, with a key
        _ => Err("the bucket's endpoint is not a URL; allowed: https://host[:port]".into()),
    }
}

/// Whether a server is on this machine.
pub(super) fn is_local(endpoint: &str) -> bool {
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
pub(super) type Store = Arc<dyn ObjectStore>;
