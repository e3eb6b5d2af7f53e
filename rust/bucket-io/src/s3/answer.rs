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
pub(super) fn failure(error: &Error, refusal: Option<&Refusal>, action: &str) -> Failure {
    let status = refusal.map_or(0, |refusal| refusal.status);
    let code = refusal.map_or("", |refusal| refusal.code.as_str());
    match error {
        // a 409 is one of two concurrent creates, and does not say which one won
        Error::AlreadyExists { .. } if status == 412 || status == 304 => Failure::Exists,
        // a missing bucket, a wrong host or a proxy also return 404
        Error::NotFound { .. } if code == "NoSuchKey" => Failure::Absent,
        _ => Failure::Unknown(format!("{action}: {}", reason(error, refusal))),
    }
}

/// Where a machine's role provides credentials.
const METADATA: &str = "169.254.169.254";

fn reason(error: &Error, refusal: Option<&Refusal>) -> String {
    let Some(refusal) = refusal else {
        return innermost(error);
    };
    let Refusal {
        server,
        status,
        code,
        message,
    } = refusal;
    if server == METADATA {
        return "no credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run on a machine with a role".into();
    }
    if *status == 0 {
        return format!("{server}: {}", innermost(error));
    }
    let said = match (code.is_empty(), message.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!(" {code}"),
        (false, false) => format!(" {code}: {message}"),
    };
    let advice = match (status, code.as_str()) {
        (_, "NoSuchBucket") => ". Create the bucket, or correct its name",
        (
            _,
            "InvalidAccessKeyId"
            | "XAdminUserNotFound"
            | "SignatureDoesNotMatch"
            | "ExpiredToken"
            | "InvalidToken",
        ) => ". Correct the credentials in the environment",
        (301 | 307, _) | (400, "AuthorizationHeaderMalformed") => {
            ". Name the region of the bucket (sharecore.bucket.region, AWS_REGION)"
        }
        (_, "RequestTimeTooSkewed") => ". Set this machine's clock",
        _ => "",
    };
    format!("{status}{said}{advice}")
}
