//! The outcome of a request as an answer: definite, or unknown with a reason.

use object_store::Error;

use super::connect::innermost;
use super::refusal::Refusal;

/// Why a request did not succeed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The name exists: 412.
    Exists,
    /// The object does not exist: a 404 about the key, not the bucket.
    Absent,
    /// No definite answer.
    Unknown(String),
}

/// Classify an error; `action` describes the request, such as "PUT journal/7".
pub(super) fn failure(
    error: &Error,
    refusal: Option<&Refusal>,
    action: &str,
    no_credentials: &str,
) -> Failure {
    let status = refusal.map_or(0, |refusal| refusal.status);
    let code = refusal.map_or("", |refusal| refusal.code.as_str());
    match error {
        // a 409 is one of two concurrent creates, and does not say which one won
        Error::AlreadyExists { .. } if status == 412 || status == 304 => Failure::Exists,
        // the one 409 that does say so is Azure's
        Error::AlreadyExists { .. } if code == "BlobAlreadyExists" => Failure::Exists,
        // a missing bucket, a wrong host or a proxy also return 404
        Error::NotFound { .. } if matches!(code, "NoSuchKey" | "BlobNotFound") => Failure::Absent,
        _ => Failure::Unknown(format!(
            "{action}: {}",
            reason(error, refusal, no_credentials)
        )),
    }
}

/// Where a machine's role provides credentials.
const METADATA: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

fn reason(error: &Error, refusal: Option<&Refusal>, no_credentials: &str) -> String {
    let Some(refusal) = refusal else {
        return innermost(error);
    };
    let Refusal {
        server,
        status,
        code,
        message,
    } = refusal;
    if METADATA.contains(&server.as_str()) {
        return no_credentials.into();
    }
    if *status == 0 {
        return format!("{server}: {}", innermost(error));
    }
    let said = match (code.is_empty(), message.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!(" {code}"),
        (false, false) => format!(" {code}: {}", message.trim_end_matches('.')),
    };
    let advice = match (status, code.as_str()) {
        (_, "NoSuchBucket") => ". Create the bucket, or correct its name",
        (_, "ContainerNotFound") => ". Create the container, or correct its name",
        // Google's for 401, Azure's, and those of token endpoints
        (401, _)
        | (
            _,
            "AuthenticationFailed"
            | "invalid_client"
            | "invalid_grant"
            | "unauthorized_client"
            | "InvalidAccessKeyId"
            | "XAdminUserNotFound"
            | "SignatureDoesNotMatch"
            | "ExpiredToken"
            | "InvalidToken",
        ) => ". Correct the credentials in the environment",
        (301 | 307, _) | (400, "AuthorizationHeaderMalformed") => {
            ". Name the region of the bucket (sharecore.bucket.region, AWS_REGION)"
        }
        // Azurite's words for a wrong key; its code is Azure's for a firewall
        _ if message.starts_with("Server failed to authenticate") => {
            ". Correct the credentials in the environment"
        }
        (_, "RequestTimeTooSkewed") => ". Set this machine's clock",
        _ => "",
    };
    format!("{status}{said}{advice}")
}
