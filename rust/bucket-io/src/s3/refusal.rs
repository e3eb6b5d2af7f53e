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
        if status.is_success() {
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
        note(Refusal {
            server,
            status: status.as_u16(),
            code: element(&text, "Code"),
            message: element(&text, "Message"),
        });
        Ok(HttpResponse::from_parts(parts, bytes.into()))
    }
}

/// Outside a request, nobody is interested.
fn note(refusal: Refusal) {
    let _ = REFUSAL.try_with(|seen| *seen.borrow_mut() = Some(refusal));
}

/// Return the text of the first element with this name, in one line of printable characters.
fn element(document: &str, name: &str) -> String {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let inner = document
        .split_once(&open)
        .and_then(|(_, rest)| rest.split_once(&close))
        .map_or("", |(inner, _)| inner);
    inner
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MESSAGE_CHARS_MAX)
        .collect()
}
