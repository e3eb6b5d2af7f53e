//! Field types.

use std::borrow::Cow;

use super::{Form, Part};
use crate::input::{Input, Malformed};
use crate::layout::{Field, Kind};
use crate::output::Output;
use crate::read::{length, text};
use crate::value::{Sink, Unfit};

fn plain(name: &str, kind: Kind) -> Field {
    Field {
        name: name.into(),
        kind,
        array: false,
        nullable: false,
        tag: None,
        layout: None,
    }
}

fn null(name: &str) -> Malformed {
    Malformed(Cow::Owned(format!("{name} must not be null")))
}

fn write_length(
    name: &str,
    length: Option<usize>,
    short: bool,
    form: Form,
    out: &mut Vec<u8>,
) -> Result<(), Unfit> {
    if out.length(length, form.flexible, short) {
        Ok(())
    } else {
        Err(Unfit(name.into()))
    }
}

macro_rules! numbers {
    ($($type:ty, $kind:ident;)*) => {$(
        impl Part<'_> for $type {
            const FIELD_BYTES: usize = size_of::<$type>();

            fn element_bytes(_: Form) -> usize {
                size_of::<$type>()
            }

            #[inline]
            fn read(_: &str, _: Form, input: &mut Input<'_>) -> Result<Self, Malformed> {
                Ok(<$type>::from_be_bytes(input.fixed()?))
            }

            #[inline]
            fn write<S: Sink>(&self, _: &str, _: Form, out: &mut S) -> Result<(), Unfit> {
                out.buffer().extend_from_slice(&self.to_be_bytes());
                Ok(())
            }

            fn field(name: &str, _: Form) -> Field {
                plain(name, Kind::$kind)
            }
        }
    )*};
}

numbers! {
    i8, Int8;
    i16, Int16;
    i32, Int32;
    i64, Int64;
}

impl Part<'_> for bool {
    const FIELD_BYTES: usize = 1;

    fn element_bytes(_: Form) -> usize {
        1
    }

    fn read(_: &str, _: Form, input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(input.fixed::<1>()? != [0])
    }

    fn write<S: Sink>(&self, _: &str, _: Form, out: &mut S) -> Result<(), Unfit> {
        out.buffer().push((*self).into());
        Ok(())
    }

    fn field(name: &str, _: Form) -> Field {
        plain(name, Kind::Bool)
    }
}

/// A UUID; all zeros means none.
impl Part<'_> for [u8; 16] {
    const FIELD_BYTES: usize = 16;

    fn element_bytes(_: Form) -> usize {
        16
    }

    fn read(_: &str, _: Form, input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.fixed()
    }

    fn write<S: Sink>(&self, _: &str, _: Form, out: &mut S) -> Result<(), Unfit> {
        out.buffer().extend_from_slice(self);
        Ok(())
    }

    fn field(name: &str, _: Form) -> Field {
        plain(name, Kind::Uuid)
    }
}

impl<'a> Part<'a> for Option<&'a str> {
    const FIELD_BYTES: usize = 1;

    fn element_bytes(_: Form) -> usize {
        1
    }

    fn read(name: &str, form: Form, input: &mut Input<'a>) -> Result<Self, Malformed> {
        let size = length(true, form.flexible, input)?;
        size.map(|size| text(size, name, input)).transpose()
    }

    fn write<S: Sink>(&self, name: &str, form: Form, out: &mut S) -> Result<(), Unfit> {
        let out = out.buffer();
        write_length(name, self.map(str::len), true, form, out)?;
        out.extend_from_slice(self.unwrap_or_default().as_bytes());
        Ok(())
    }

    fn field(name: &str, _: Form) -> Field {
        Field {
            nullable: true,
            ..plain(name, Kind::String)
        }
    }
}

impl<'a> Part<'a> for &'a str {
    const FIELD_BYTES: usize = 1;

    fn element_bytes(_: Form) -> usize {
        1
    }

    fn read(name: &str, form: Form, input: &mut Input<'a>) -> Result<Self, Malformed> {
        Option::<&str>::read(name, form, input)?.ok_or_else(|| null(name))
    }

    fn write<S: Sink>(&self, name: &str, form: Form, out: &mut S) -> Result<(), Unfit> {
        Some(*self).write(name, form, out)
    }

    fn field(name: &str, _: Form) -> Field {
        plain(name, Kind::String)
    }
}

/// An array of int8.
impl<'a> Part<'a> for &'a [u8] {
    const FIELD_BYTES: usize = 1;

    fn element_bytes(_: Form) -> usize {
        1
    }

    fn read(name: &str, form: Form, input: &mut Input<'a>) -> Result<Self, Malformed> {
        let size = length(false, form.flexible, input)?.ok_or_else(|| null(name))?;
        input.sized(size, name)
    }

    fn write<S: Sink>(&self, name: &str, form: Form, out: &mut S) -> Result<(), Unfit> {
        let out = out.buffer();
        write_length(name, Some(self.len()), false, form, out)?;
        out.extend_from_slice(self);
        Ok(())
    }

    fn field(name: &str, _: Form) -> Field {
        Field {
            array: true,
            ..plain(name, Kind::Int8)
        }
    }
}

/// Record batches, which may be null in any version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Records<'a> {
    /// None.
    #[default]
    Null,
    /// Bytes in the message, or to be copied into it.
    Here(&'a [u8]),
    /// Bytes held by the [`Sink`].
    Far {
        /// Their length.
        len: usize,
        /// Their ID in the sink.
        id: usize,
    },
}

impl<'a> Records<'a> {
    /// The bytes of a message that was read.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Records::Here(bytes) => bytes,
            Records::Null | Records::Far { .. } => &[],
        }
    }
}

impl<'a> Part<'a> for Records<'a> {
    const FIELD_BYTES: usize = 1;

    fn element_bytes(_: Form) -> usize {
        1
    }

    fn read(name: &str, form: Form, input: &mut Input<'a>) -> Result<Self, Malformed> {
        Ok(match length(false, form.flexible, input)? {
            Some(size) => Records::Here(input.sized(size, name)?),
            None => Records::Null,
        })
    }

    fn write<S: Sink>(&self, name: &str, form: Form, out: &mut S) -> Result<(), Unfit> {
        let length = match self {
            Records::Null => None,
            Records::Here(bytes) => Some(bytes.len()),
            Records::Far { len, .. } => Some(*len),
        };
        write_length(name, length, false, form, out.buffer())?;
        match self {
            Records::Here(bytes) => out.buffer().extend_from_slice(bytes),
            Records::Far { id, .. } if !out.far(*id) => return Err(Unfit(name.into())),
            Records::Null | Records::Far { .. } => {}
        }
        Ok(())
    }

    fn field(name: &str, _: Form) -> Field {
        plain(name, Kind::Records)
    }
}

impl<'a, T: Part<'a>> Part<'a> for Vec<T> {
    const FIELD_BYTES: usize = 1;

    fn element_bytes(_: Form) -> usize {
        1
    }

    fn read(name: &str, form: Form, input: &mut Input<'a>) -> Result<Self, Malformed> {
        let count = length(false, form.flexible, input)?.ok_or_else(|| null(name))?;
        // memory is reserved for no more elements than the remaining bytes can hold
        if count.saturating_mul(T::element_bytes(form)) > input.left() {
            return Err(Malformed::past_the_end(name));
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(T::read(name, form, input)?);
        }
        Ok(values)
    }

    fn write<S: Sink>(&self, name: &str, form: Form, out: &mut S) -> Result<(), Unfit> {
        write_length(name, Some(self.len()), false, form, out.buffer())?;
        self.iter().try_for_each(|each| each.write(name, form, out))
    }

    fn field(name: &str, form: Form) -> Field {
        Field {
            array: true,
            ..T::field(name, form)
        }
    }
}
