//! Google Cloud Storage, by its XML API: a create has `x-goog-if-generation-match: 0`.

use std::env;

use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};

use super::connect::{client_options, no_retries, not_built};
use super::refusal::NotingConnector;
use crate::place::Settings;

/// Neither the environment nor the metadata server has credentials.
pub(super) const NO_CREDENTIALS: &str = "no credentials. Set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account's key, or run on a machine with a service account";

/// Return the client; no request is sent yet.
pub(super) fn open(settings: &Settings, bucket: &str) -> Result<GoogleCloudStorage, String> {
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        .with_http_connector(NotingConnector::default());
    let given = settings.endpoint.clone();
    let endpoint = given
        .or_else(emulator)
        .or_else(|| builder.get_config_value(&GoogleConfigKey::BaseUrl));
    let options = client_options(settings, endpoint.as_deref())?;
    if let Some(endpoint) = endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
        if endpoint.to_ascii_lowercase().starts_with("http:") {
            // a token in plain text opens the bucket to anyone who reads it, and emulators want none
            builder = builder.with_bearer_token("none");
        }
    }
    builder
        .with_client_options(options)
        .build()
        .map_err(|error| not_built(settings, &error))
}

/// The emulator that Google's own clients would use; its scheme may be missing.
fn emulator() -> Option<String> {
    let host = env::var("STORAGE_EMULATOR_HOST").ok()?;
    match host.as_str() {
        "" => None,
        _ if host.contains("://") => Some(host),
        _ => Some(format!("http://{host}")),
    }
}
