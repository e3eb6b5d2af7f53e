//! Azure Blob Storage: a create has `If-None-Match: *`.

use std::env;

use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};

use super::connect::{client_options, no_retries, not_built};
use super::refusal::NotingConnector;
use crate::place::Settings;

/// Neither the environment nor the machine has credentials.
pub(super) const NO_CREDENTIALS: &str = "no credentials. Set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or run on a machine with a managed identity";

/// Return the client; no request is sent yet.
pub(super) fn open(
    settings: &Settings,
    account: &str,
    container: &str,
) -> Result<MicrosoftAzure, String> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    let named = builder
        .get_config_value(&AzureConfigKey::AccountName)
        .or_else(|| env::var("AZURE_STORAGE_ACCOUNT").ok());
    if let Some(named) = named.filter(|named| named != account) {
        return Err(format!(
            "{}: the environment names the storage account {named}, the URL {account}. Correct one of them",
            settings.place
        ));
    }
    builder = builder
        .with_account(account)
        .with_container_name(container)
        // the URL says where the objects are, not the environment
        .with_use_emulator(false)
        .with_use_fabric_endpoint(false)
        .with_retry(no_retries())
        .with_http_connector(NotingConnector::default());
    if builder
        .get_config_value(&AzureConfigKey::AccessKey)
        .is_none()
        && let Ok(key) = env::var("AZURE_STORAGE_KEY")
    {
        builder = builder.with_access_key(key);
    }
    let given = settings.endpoint.clone();
    let endpoint = given.or_else(|| builder.get_config_value(&AzureConfigKey::Endpoint));
    let options = client_options(settings, endpoint.as_deref())?;
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    builder
        .with_client_options(options)
        .build()
        .map_err(|error| not_built(settings, &error))
}
