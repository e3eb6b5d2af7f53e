//! Compares typed messages with the schema-driven reader and writer.

use sharecore_wire::typed::Message;
use sharecore_wire::typed::produce::{ProduceRequest, ProduceResponse};
use sharecore_wire::typed::share_acknowledge::{ShareAcknowledgeRequest, ShareAcknowledgeResponse};
use sharecore_wire::typed::share_fetch::{ShareFetchRequest, ShareFetchResponse};
use sharecore_wire::{Held, Input, Layout, Value, read};

/// The same message without tagged fields that equal their defaults.
fn plain<'a>(layout: &Layout, value: Value<'a>) -> Value<'a> {
    let Value::Record(values) = value else {
        return value;
    };
    let says_nothing = |value: &Value<'_>| match value {
        Value::Array(values) => values.is_empty(),
        Value::Record(values) => values.iter().all(|value| *value == Value::Int(-1)),
        _ => false,
    };
    let fields = layout.fields.iter().zip(values);
    let fields = fields.map(|(field, value)| {
        let value = match (&field.layout, value) {
            (Some(layout), Value::Array(values)) => {
                let values = values.into_iter().map(|value| plain(layout, value));
                Value::Array(values.collect())
            }
            (Some(layout), value) => plain(layout, value),
            (None, value) => value,
        };
        if field.tag.is_some() && says_nothing(&value) {
            Value::Absent
        } else {
            value
        }
    });
    Value::Record(fields.collect())
}

/// Both read the same message from bytes, or refuse them for the same reason; both encode the result to the same bytes.
pub(crate) fn agree<'a, M: Message<'a>>(version: i16, bytes: &'a [u8]) -> bool {
    let layout = M::layout(version).expect("a version that there is");
    let (mut own, mut any) = (Input::new(bytes, 0), Input::new(bytes, 0));
    let (message, value) = match (
        M::decode(version, &mut own),
        read(&layout, &mut any, &mut Held),
    ) {
        (Ok(message), Ok(value)) => (message, value),
        (Err(own), Err(any)) => {
            assert_eq!(own, any, "{} {version}", M::NAME);
            return false;
        }
        (own, any) => panic!(
            "{} {version}: {:?} {any:?}",
            M::NAME,
            own.map(|_| "a message")
        ),
    };
    assert_eq!(own.at(), any.at(), "{} {version}", M::NAME);
    let mut written = Vec::new();
    message
        .encode(version, &mut written)
        .expect("what was read can be written");
    let again = read(&layout, &mut Input::new(&written, 0), &mut Held).expect("what was written");
    assert_eq!(
        plain(&layout, again),
        plain(&layout, value),
        "{} {version}",
        M::NAME
    );
    true
}

/// A typed message for the tests.
#[allow(dead_code, reason = "not all who share this file need the schema")]
pub(crate) struct Known {
    pub(crate) versions: std::ops::RangeInclusive<i16>,
    pub(crate) layout: fn(i16) -> Option<Layout>,
    /// [`agree`] on bytes in a version.
    pub(crate) agree: fn(i16, &[u8]) -> bool,
}

macro_rules! known {
    ($($name:ident)*) => {
        /// All typed messages.
        pub(crate) const KNOWN: &[Known] = &[$(
            Known {
                versions: $name::VERSIONS,
                layout: $name::layout,
                agree: |version, bytes| agree::<$name<'_>>(version, bytes),
            },
        )*];
    };
}

known! {
    ProduceRequest ProduceResponse ShareFetchRequest ShareFetchResponse ShareAcknowledgeRequest ShareAcknowledgeResponse
}
