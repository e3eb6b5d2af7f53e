//! Redis Streams: `XADD`; `XREADGROUP` for one entry, and `XACK` for it.

use crate::run::{Ended, Outgoing, Talk};

fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Length of the value at the front of `input`, and the bulk strings in it; `None` when it is not whole.
fn value<'a>(input: &'a [u8], strings: &mut Vec<&'a [u8]>) -> Result<Option<usize>, String> {
    let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let number = || {
        std::str::from_utf8(&input[1..end])
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
    };
    let mut used = end + 2;
    match input[0] {
        b'-' => return Err(String::from_utf8_lossy(&input[..end]).into_owned()),
        b'$' => {
            if let Ok(size) = usize::try_from(number().ok_or("a length that is no number")?) {
                if input.len() < used + size + 2 {
                    return Ok(None);
                }
                strings.push(&input[used..used + size]);
                used += size + 2;
            }
        }
        b'*' => {
            for _ in 0..number().ok_or("a length that is no number")? {
                let Some(more) = value(input.get(used..).unwrap_or_default(), strings)? else {
                    return Ok(None);
                };
                used += more;
            }
        }
        _ => {}
    }
    Ok(Some(used))
}

/// Appends `WAIT` for so many replicas, if any.
fn wait(out: &mut Vec<u8>, replicas: usize) {
    if replicas > 0 {
        command(out, &[b"WAIT", replicas.to_string().as_bytes(), b"0"]);
    }
}

/// Length of the answer to a write, and of that to its `WAIT`; `None` when they are not whole.
fn written(input: &[u8], replicas: usize) -> Result<Option<usize>, String> {
    let mut used = 0;
    for _ in 0..1 + usize::from(replicas > 0) {
        let rest = &input[used..];
        if rest.is_empty() {
            return Ok(None);
        }
        let Some(more) = value(rest, &mut Vec::new())? else {
            return Ok(None);
        };
        used += more;
    }
    Ok(Some(used))
}

/// One record an `XADD`.
pub struct Producer {
    request: Vec<u8>,
    replicas: usize,
}

impl Producer {
    /// A producer that waits for so many replicas.
    pub fn new(partition: usize, record_bytes: usize, replicas: usize) -> Self {
        let mut request = Vec::new();
        let (stream, record) = (format!("work-{partition}"), vec![b'x'; record_bytes]);
        command(
            &mut request,
            &[b"XADD", stream.as_bytes(), b"*", b"v", &record],
        );
        wait(&mut request, replicas);
        Producer { request, replicas }
    }
}

impl Talk for Producer {
    fn start(&mut self, out: &mut Outgoing) {
        out.bytes.extend_from_slice(&self.request);
        out.begin();
    }

    fn take(&mut self, input: &[u8], out: &mut Outgoing) -> Result<Option<(usize, Ended)>, String> {
        let Some(used) = written(input, self.replicas)? else {
            return Ok(None);
        };
        out.bytes.extend_from_slice(&self.request);
        out.begin();
        Ok(Some((used, Ended::Request)))
    }
}

/// One entry an `XREADGROUP`, and an `XACK` for it.
pub struct Consumer {
    stream: String,
    fetch: Vec<u8>,
    acknowledging: bool,
    replicas: usize,
}

impl Consumer {
    /// A consumer whose acknowledgements wait for so many replicas.
    pub fn new(number: usize, partition: usize, replicas: usize) -> Self {
        let (stream, member) = (format!("work-{partition}"), format!("member-{number}"));
        let mut fetch = Vec::new();
        let words = [
            "XREADGROUP",
            "GROUP",
            "bench",
            &member,
            "COUNT",
            "1",
            "BLOCK",
            "500",
            "STREAMS",
            &stream,
            ">",
        ];
        command(&mut fetch, &words.map(str::as_bytes));
        Consumer {
            stream,
            fetch,
            acknowledging: false,
            replicas,
        }
    }
}

impl Talk for Consumer {
    fn start(&mut self, out: &mut Outgoing) {
        out.bytes.extend_from_slice(&self.fetch);
        out.begin();
    }

    fn take(&mut self, input: &[u8], out: &mut Outgoing) -> Result<Option<(usize, Ended)>, String> {
        let mut strings = Vec::new();
        if input.is_empty() {
            return Ok(None);
        }
        let used = if self.acknowledging {
            written(input, self.replicas)?
        } else {
            value(input, &mut strings)?
        };
        let Some(used) = used else {
            return Ok(None);
        };
        if !self.acknowledging && strings.len() > 1 {
            command(
                &mut out.bytes,
                &[b"XACK", self.stream.as_bytes(), b"bench", strings[1]],
            );
            wait(&mut out.bytes, self.replicas);
            self.acknowledging = true;
            return Ok(Some((used, Ended::Nothing)));
        }
        let ended = if std::mem::take(&mut self.acknowledging) {
            Ended::Request
        } else {
            Ended::Nothing
        };
        out.bytes.extend_from_slice(&self.fetch);
        out.begin();
        Ok(Some((used, ended)))
    }
}
