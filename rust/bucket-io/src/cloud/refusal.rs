//! Error responses, captured below `object_store`, which keeps only their text.

use std::cell::RefCell;

use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// The largest error document read; servers send smaller ones.
const BODY_BYTES_MAX: usize = 16 << 10;
const MESSAGE_CHARS_MAX: usize = 200;

/// The last failed response of a request, or an attempt without response.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusal {
    /// Host and port of the server.
    pub(super) server: String,
    /// 0 if there was no response.
    pub(super) status: u16,
    /// For example `NoSuchKey`; empty without an error document.
    pub(super) code: String,
    /// The server's message, shortened.
    pub(super) message: String,
}

tokio::task_local! {
    /// Of the current task's request.
    pub(super) static REFUSAL: RefCell<Option<Refusal>>;
}

/// Connects as `object_store` does, and records refusals.
#[derive(Debug, Default)]
pub(super) struct NotingConnector(ReqwestConnector);

impl HttpConnector for NotingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Noting(self.0.connect(options)?)))
    }
}

struct Noting(HttpClient);

impl std::fmt::Debug for Noting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Noting")
    }
}

#[async_trait]
impl HttpService for Noting {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let server = request
            .uri()
            .authority()
            .map_or("", |a| a.as_str())
            .to_owned();
        // Azure's deletes: the response is a success, and has the responses of its parts
        let is_batch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("comp=batch"));
        let response = match self.0.execute(request).await {
            Ok(response) => response,
            Err(error) => {
                note(Refusal {
                    server,
                    ..Refusal::default()
                });
                return Err(error);
            }
        };
        let status = response.status();
        if status.is_success() && !is_batch {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let mut bytes = Vec::new();
        let mut chunks = body.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            // a connection that breaks within the error document still counts as a refusal
            let Ok(chunk) = chunk else { break };
            let room = BODY_BYTES_MAX - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if bytes.len() == BODY_BYTES_MAX {
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let status = if status.is_success() {
            part_status(&text)
        } else {
            status.as_u16()
        };
        if status >= 300 {
            note(Refusal {
                server,
                status,
                code: first_of(&[element(&text, "Code"), json_text(&text, "error")]),
                // Google's details name the missing permission
                message: first_of(&[element(&text, "Details"), element(&text, "Message")]),
            });
        }
        Ok(HttpResponse::from_parts(parts, bytes.into()))
    }
}

/// Outside a request, nobody is interested.
fn note(refusal: Refusal) {
    let _ = REFUSAL.try_with(|seen| *seen.borrow_mut() = Some(refusal));
}

/// Return the status of the only part of a batch's response; 0 if it has none.
fn part_status(text: &str) -> u16 {
    let part = text.split_once("HTTP/1.1 ").map_or("", |(_, rest)| rest);
    part.get(..3)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0)
}

fn first_of(texts: &[String]) -> String {
    let found = texts.iter().find(|text| !text.is_empty());
    found.cloned().unwrap_or_default()
}

/// Return the first text with this name in a JSON document, such as the error code of a token endpoint.
fn json_text(document: &str, name: &str) -> String {
    let value = document
        .split_once(&format!("\"{name}\""))
        .and_then(|(_, rest)| rest.trim_start().strip_prefix(':'))
        .and_then(|rest| rest.trim_start().strip_prefix('"'))
        .and_then(|rest| rest.split_once('"'))
        .map_or("", |(value, _)| value);
    printable(value)
}

/// Return the text of the first element with this name, in one line of printable characters.
fn element(document: &str, name: &str) -> String {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let inner = document
        .split_once(&open)
        .and_then(|(_, rest)| rest.split_once(&close))
        .map_or("", |(inner, _)| inner);
    printable(inner)
}

/// Return the first line, of printable characters; Azure's further lines have an ID and a time.
fn printable(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("");
    line.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MESSAGE_CHARS_MAX)
        .collect()
}
