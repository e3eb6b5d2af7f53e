//! NATS JetStream: publish with an acknowledgement from the stream; next message, acknowledged and confirmed.

use std::io::Write as _;

use crate::run::{Ended, Outgoing, Talk};

/// What the server sent: an `INFO` or `PING`, or a message with the subject to answer to.
enum Said<'a> {
    Other { ping: bool },
    Message { reply: &'a str, empty: bool },
}

fn line(input: &[u8]) -> Option<(&str, usize)> {
    let end = input.windows(2).position(|pair| pair == b"\r\n")?;
    Some((std::str::from_utf8(&input[..end]).ok()?, end + 2))
}

fn said(input: &[u8]) -> Result<Option<(usize, Said<'_>)>, String> {
    let Some((head, used)) = line(input) else {
        return Ok(None);
    };
    let mut words = head.split(' ');
    let kind = words.next().unwrap_or_default();
    if kind == "-ERR" {
        return Err(head.to_string());
    }
    if kind != "MSG" && kind != "HMSG" {
        return Ok(Some((
            used,
            Said::Other {
                ping: kind == "PING",
            },
        )));
    }
    // subject, subscription, the subject to answer to where there is one, [length of headers,] length
    let words: Vec<&str> = words.collect();
    let sizes = if kind == "MSG" { 1 } else { 2 };
    let size: usize = words
        .last()
        .and_then(|size| size.parse().ok())
        .ok_or("a message without its length")?;
    let reply = if words.len() > 2 + sizes {
        words[2]
    } else {
        ""
    };
    let whole = used + size + 2;
    if input.len() < whole {
        return Ok(None);
    }
    // a status, such as "404 no messages", is headers and nothing else
    let empty = kind == "HMSG" && words[words.len() - 2] == words[words.len() - 1];
    if kind == "MSG" && input[used..].starts_with(b"{\"error\"") {
        return Err(String::from_utf8_lossy(&input[used..whole]).into_owned());
    }
    Ok(Some((whole, Said::Message { reply, empty })))
}

const CONNECT: &str = "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\n";

/// One record a publish; the stream's acknowledgement is the answer.
pub struct Producer {
    request: Vec<u8>,
    hello: String,
}

impl Producer {
    pub fn new(number: usize, partition: usize, record_bytes: usize) -> Self {
        let mut request =
            format!("PUB work.{partition} _INBOX.p{number} {record_bytes}\r\n").into_bytes();
        request.resize(request.len() + record_bytes, b'x');
        request.extend_from_slice(b"\r\n");
        Producer {
            request,
            hello: format!("{CONNECT}SUB _INBOX.p{number} 1\r\n"),
        }
    }
}

impl Talk for Producer {
    fn start(&mut self, out: &mut Outgoing) {
        out.bytes.extend_from_slice(self.hello.as_bytes());
        out.bytes.extend_from_slice(&self.request);
        out.begin();
    }

    fn take(&mut self, input: &[u8], out: &mut Outgoing) -> Result<Option<(usize, Ended)>, String> {
        let Some((used, said)) = said(input)? else {
            return Ok(None);
        };
        if let Said::Other { ping } = said {
            out.bytes
                .extend_from_slice(if ping { b"PONG\r\n" } else { b"" });
            return Ok(Some((used, Ended::Nothing)));
        }
        out.bytes.extend_from_slice(&self.request);
        out.begin();
        Ok(Some((used, Ended::Request)))
    }
}

/// One message a pull; its acknowledgement is confirmed before the next.
pub struct Consumer {
    number: usize,
    acknowledging: bool,
}

impl Consumer {
    pub fn new(number: usize) -> Self {
        Consumer {
            number,
            acknowledging: false,
        }
    }

    fn next(&mut self, out: &mut Outgoing) {
        let ask = r#"{"batch":1,"expires":500000000}"#;
        let number = self.number;
        let _ = write!(
            out.bytes,
            "PUB $JS.API.CONSUMER.MSG.NEXT.WORK.pull _INBOX.c{number} {}\r\n{ask}\r\n",
            ask.len()
        );
        out.begin();
    }
}

impl Talk for Consumer {
    fn start(&mut self, out: &mut Outgoing) {
        let number = self.number;
        let _ = write!(
            out.bytes,
            "{CONNECT}SUB _INBOX.c{number} 1\r\nSUB _INBOX.a{number} 2\r\n"
        );
        self.next(out);
    }

    fn take(&mut self, input: &[u8], out: &mut Outgoing) -> Result<Option<(usize, Ended)>, String> {
        let Some((used, said)) = said(input)? else {
            return Ok(None);
        };
        let (reply, empty) = match said {
            Said::Other { ping } => {
                out.bytes
                    .extend_from_slice(if ping { b"PONG\r\n" } else { b"" });
                return Ok(Some((used, Ended::Nothing)));
            }
            Said::Message { reply, empty } => (reply, empty),
        };
        if self.acknowledging {
            self.acknowledging = false;
            self.next(out);
            return Ok(Some((used, Ended::Request)));
        }
        if empty {
            self.next(out);
        } else {
            let _ = write!(
                out.bytes,
                "PUB {reply} _INBOX.a{} 4\r\n+ACK\r\n",
                self.number
            );
            self.acknowledging = true;
        }
        Ok(Some((used, Ended::Nothing)))
    }
}
