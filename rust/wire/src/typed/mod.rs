//! Typed messages: structs read in place, without an allocation per field, and written field by field.
//!
//! The encoding is the same as that of [`read`](crate::read) and [`write`](crate::write), which take any schema,
//! including the errors. [`Message::layout`] is a struct's schema in those terms.

mod messages;
mod parts;
mod structs;

pub use messages::{common, produce, share_acknowledge, share_fetch};
pub use parts::Records;

use std::ops::RangeInclusive;

use crate::input::{Input, Malformed};
use crate::layout::{Field, Layout};
use crate::value::{Sink, Unfit};

/// A message's version, and the encoding that follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The version.
    pub version: i16,
    /// Whether lengths are compact and fields may be tagged.
    pub flexible: bool,
}

/// A field, or an element of an array.
pub trait Part<'a>: Sized {
    /// The smallest encoded size of a field.
    const FIELD_BYTES: usize;
    /// The smallest encoded size of an array element.
    fn element_bytes(form: Form) -> usize;
    /// Reads one; `name` is the field's name.
    fn read(name: &str, form: Form, input: &mut Input<'a>) -> Result<Self, Malformed>;
    /// Writes one; `name` is the field's name.
    fn write<S: Sink>(&self, name: &str, form: Form, out: &mut S) -> Result<(), Unfit>;
    /// A field of this type.
    fn field(name: &str, form: Form) -> Field;
}

/// A part with fields of its own, which an array may have as an element.
pub trait Struct<'a>: Part<'a> {
    /// Its schema.
    fn schema(form: Form) -> Layout;
}

/// A whole request or response.
pub trait Message<'a>: Struct<'a> {
    /// Its name in Kafka.
    const NAME: &'static str;
    /// Its versions.
    const VERSIONS: RangeInclusive<i16>;
    /// The first version with compact lengths.
    const FLEXIBLE_SINCE: i16;

    /// The encoding of a version.
    fn form(version: i16) -> Form {
        Form {
            version,
            flexible: version >= Self::FLEXIBLE_SINCE,
        }
    }

    /// Reads a message of this version; the bytes after it are left.
    fn decode(version: i16, input: &mut Input<'a>) -> Result<Self, Malformed> {
        Self::read(Self::NAME, Self::form(version), input)
    }

    /// Writes the message in a version.
    fn encode<S: Sink>(&self, version: i16, out: &mut S) -> Result<(), Unfit> {
        self.write(Self::NAME, Self::form(version), out)
    }

    /// The schema of a version; `None` for an unknown one.
    fn layout(version: i16) -> Option<Layout> {
        Self::VERSIONS
            .contains(&version)
            .then(|| Self::schema(Self::form(version)))
    }
}
