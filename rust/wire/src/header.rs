//! The header of a request.

use std::borrow::Cow;

use crate::frame::SIZE_BYTES;
use crate::input::{Input, Malformed};

/// The start of every request, read without knowing whether the API exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The API key.
    pub api_key: i16,
    /// The API version.
    pub api_version: i16,
    /// Repeated in the response.
    pub correlation_id: i32,
    /// The client ID.
    pub client_id: Option<&'a str>,
}

/// Reads a request header except its tagged fields, which only the API's schema describes.
pub fn read_header<'a>(input: &mut Input<'a>) -> Result<Header<'a>, Malformed> {
    let length = input.left();
    let too_short = |_| {
        Malformed(Cow::Owned(format!(
            "a frame of {length} bytes holds no request header"
        )))
    };
    let mut head = || -> Result<_, Malformed> {
        Ok((
            i16::from_be_bytes(input.fixed()?),
            i16::from_be_bytes(input.fixed()?),
            i32::from_be_bytes(input.fixed()?),
            i16::from_be_bytes(input.fixed()?),
        ))
    };
    let (api_key, api_version, correlation_id, size) = head().map_err(too_short)?;
    let client_id = match usize::try_from(size) {
        Err(_) => None,
        Ok(size) => {
            let raw = input.sized(size, "the client id")?;
            let text = std::str::from_utf8(raw);
            Some(text.map_err(|_| Malformed(Cow::Borrowed("the client id is not UTF-8")))?)
        }
    };
    Ok(Header {
        api_key,
        api_version,
        correlation_id,
        client_id,
    })
}

/// Return a response up to its message; its size, in the first four bytes, is not known yet.
pub fn response_head(correlation_id: i32, tagged_header: bool) -> Vec<u8> {
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(&[0; SIZE_BYTES]);
    head.extend_from_slice(&correlation_id.to_be_bytes());
    if tagged_header {
        head.push(0);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_begins_with_its_size_and_correlation_id() {
        assert_eq!(response_head(258, false), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(response_head(-1, true), [0, 0, 0, 0, 255, 255, 255, 255, 0]);
    }
}
