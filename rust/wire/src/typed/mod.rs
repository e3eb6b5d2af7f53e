//! Messages as structs of Rust: read in place, without an object a field, and written field by field.
//!
//! Which bytes are right is the same as for [`read`](crate::read) and [`write`](crate::write), which take any schema: the
//! same errors, too. [`Message::layout`] is the schema of a struct in those terms.

mod messages;
mod parts;
mod structs;

pub use messages::{common, produce, share_acknowledge, share_fetch};
pub use parts::Records;

use std::ops::RangeInclusive;

use crate::input::{Input, Malformed};
use crate::layout::{Field, Layout};
use crate::value::{Sink, Unfit};

/// The version of a message, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The version.
    pub version: i16,
    /// Whether lengths are compact and fields may be tagged.
    pub flexible: bool,
}

/// What can be a field, or an element of an array.
pub trait Part<'a>: Sized {
    /// Fewest bytes of a field.
    const FIELD_BYTES: usize;
    /// Fewest bytes of an element of an array.
    fn element_bytes(form: Form) -> usize;
    /// Reads one; `name` is the field's.
    fn read(name: &str, form: Form, input: &mut Input<'a>) -> Result<Self, Malformed>;
    /// Writes one; `name` is the field's.
    fn write<S: Sink>(&self, name: &str, form: Form, out: &mut S) -> Result<(), Unfit>;
    /// A field of this type.
    fn field(name: &str, form: Form) -> Field;
}

/// A part that has fields itself: an array may have it as an element.
pub trait Struct<'a>: Part<'a> {
    /// Its schema.
    fn schema(form: Form) -> Layout;
}

/// A whole request or response.
pub trait Message<'a>: Struct<'a> {
    /// As Kafka names it.
    const NAME: &'static str;
    /// The versions that it has.
    const VERSIONS: RangeInclusive<i16>;
    /// The first version with compact lengths.
    const FLEXIBLE_SINCE: i16;

    /// What follows from a version.
    fn form(version: i16) -> Form {
        Form {
            version,
            flexible: version >= Self::FLEXIBLE_SINCE,
        }
    }

    /// Reads the message of a version; what follows it is left alone.
    fn decode(version: i16, input: &mut Input<'a>) -> Result<Self, Malformed> {
        Self::read(Self::NAME, Self::form(version), input)
    }

    /// Writes the message in a version.
    fn encode<S: Sink>(&self, version: i16, out: &mut S) -> Result<(), Unfit> {
        self.write(Self::NAME, Self::form(version), out)
    }

    /// The schema of a version; `None` for one that there is not.
    fn layout(version: i16) -> Option<Layout> {
        Self::VERSIONS
            .contains(&version)
            .then(|| Self::schema(Self::form(version)))
    }
}
