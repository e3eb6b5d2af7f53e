//! Reads a message by its layout.

use std::borrow::Cow;

use crate::input::{Input, Malformed};
use crate::layout::{Field, Kind, Layout};

/// The longest string of the protocol; a compact length could claim more.
pub const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// Builds values from a message; they may borrow from the bytes `'a`.
pub trait Build<'a> {
    /// A value of any type.
    type Value;
    /// Why a value cannot be built, or the message cannot be read.
    type Error: From<Malformed>;

    /// Any integer type except uint64.
    fn int(&mut self, value: i64) -> Result<Self::Value, Self::Error>;
    /// A uint64.
    fn uint64(&mut self, value: u64) -> Result<Self::Value, Self::Error>;
    /// A float64.
    fn float64(&mut self, value: f64) -> Result<Self::Value, Self::Error>;
    /// A bool.
    fn boolean(&mut self, value: bool) -> Result<Self::Value, Self::Error>;
    /// A UUID; all zeros means none.
    fn uuid(&mut self, value: [u8; 16]) -> Result<Self::Value, Self::Error>;
    /// A string.
    fn string(&mut self, value: &'a str) -> Result<Self::Value, Self::Error>;
    /// Bytes, record batches, and arrays of int8.
    fn bytes(&mut self, value: &'a [u8]) -> Result<Self::Value, Self::Error>;
    /// An array.
    fn array(&mut self, values: Vec<Self::Value>) -> Result<Self::Value, Self::Error>;
    /// A struct, its fields in the order of the schema.
    fn record(
        &mut self,
        layout: &Layout,
        values: Vec<Self::Value>,
    ) -> Result<Self::Value, Self::Error>;
    /// Null, where the schema allows it.
    fn null(&mut self) -> Result<Self::Value, Self::Error>;
    /// The default of an absent tagged field: `layout.fields[field]`.
    fn default(&mut self, layout: &Layout, field: usize) -> Result<Self::Value, Self::Error>;
    /// An array of this many entries follows; an error refuses the message.
    fn entries(&mut self, _count: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Reads a struct; the bytes after it are left.
pub fn read<'a, B: Build<'a>>(
    layout: &Layout,
    input: &mut Input<'a>,
    build: &mut B,
) -> Result<B::Value, B::Error> {
    let mut values = Vec::with_capacity(layout.fields.len());
    if !layout.tagged() {
        for field in &layout.fields {
            values.push(value(field, layout.flexible, input, build)?);
        }
        if layout.flexible {
            input.skip_tagged_fields()?;
        }
        return build.record(layout, values);
    }
    let mut found: Vec<Option<B::Value>> = Vec::with_capacity(layout.fields.len());
    for field in &layout.fields {
        found.push(match field.tag {
            None => Some(value(field, layout.flexible, input, build)?),
            Some(_) => None,
        });
    }
    for _ in 0..input.uvarint()? {
        let tag = input.uvarint()?;
        let place = layout
            .fields
            .iter()
            .position(|field| field.tag.is_some_and(|own| u64::from(own) == tag));
        match place {
            Some(place) => {
                // Apache Kafka ignores this size too and trusts the field itself
                input.uvarint()?;
                found[place] = Some(value(&layout.fields[place], true, input, build)?);
            }
            None => input.skip_tagged_field()?,
        }
    }
    for (place, value) in found.into_iter().enumerate() {
        values.push(match value {
            Some(value) => value,
            None => build.default(layout, place)?,
        });
    }
    build.record(layout, values)
}

fn value<'a, B: Build<'a>>(
    field: &Field,
    flexible: bool,
    input: &mut Input<'a>,
    build: &mut B,
) -> Result<B::Value, B::Error> {
    if field.fixed() {
        return fixed(field.kind, input, build);
    }
    if let (Some(layout), false) = (&field.layout, field.array) {
        if field.nullable && i8::from_be_bytes(input.fixed()?) < 0 {
            return build.null();
        }
        return read(layout, input, build);
    }
    let is_string = field.kind == Kind::String && !field.array;
    let Some(count) = length(is_string, flexible, input)? else {
        if field.nullable || field.kind == Kind::Records {
            return build.null();
        }
        return Err(Malformed(Cow::Owned(format!("{} must not be null", field.name))).into());
    };
    if field.array {
        return array(field, flexible, count, input, build);
    }
    if is_string {
        return build.string(text(count, &field.name, input)?);
    }
    let bytes = input.sized(count, &field.name)?;
    build.bytes(bytes)
}

/// Reads a string of this many bytes.
pub(crate) fn text<'a>(
    size: usize,
    name: &str,
    input: &mut Input<'a>,
) -> Result<&'a str, Malformed> {
    if size > STRING_BYTES_MAX {
        let text = format!("{name} is a string of {size} bytes, {STRING_BYTES_MAX} are allowed");
        return Err(Malformed(Cow::Owned(text)));
    }
    let text = std::str::from_utf8(input.sized(size, name)?);
    text.map_err(|_| Malformed(Cow::Owned(format!("{name} is not UTF-8"))))
}

/// The length of a string, bytes or an array; `None` for null. `short`: two bytes if it is not compact.
pub(crate) fn length(
    short: bool,
    flexible: bool,
    input: &mut Input<'_>,
) -> Result<Option<usize>, Malformed> {
    if flexible {
        return Ok((input.uvarint()? as usize).checked_sub(1));
    }
    let length = if short {
        i16::from_be_bytes(input.fixed()?).into()
    } else {
        i32::from_be_bytes(input.fixed()?)
    };
    Ok(usize::try_from(length).ok())
}

fn array<'a, B: Build<'a>>(
    field: &Field,
    flexible: bool,
    count: usize,
    input: &mut Input<'a>,
    build: &mut B,
) -> Result<B::Value, B::Error> {
    if field.kind == Kind::Int8 {
        let bytes = input.sized(count, &field.name)?;
        return build.bytes(bytes);
    }
    let layout = field.layout.as_ref();
    let each = layout.map_or(field.kind.size().unwrap_or(1), Layout::bytes_min);
    if count.saturating_mul(each) > input.left() {
        return Err(Malformed::past_the_end(&field.name).into());
    }
    build.entries(count)?;
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push(match layout {
            Some(layout) => read(layout, input, build)?,
            None if field.kind.size().is_some() => fixed(field.kind, input, build)?,
            None => {
                let Some(size) = length(true, flexible, input)? else {
                    return Err(Malformed::past_the_end("string in an array").into());
                };
                build.string(text(size, &field.name, input)?)?
            }
        });
    }
    build.array(values)
}

fn fixed<'a, B: Build<'a>>(
    kind: Kind,
    input: &mut Input<'a>,
    build: &mut B,
) -> Result<B::Value, B::Error> {
    match kind {
        Kind::Int8 => build.int(i8::from_be_bytes(input.fixed()?).into()),
        Kind::Uint8 => build.int(u8::from_be_bytes(input.fixed()?).into()),
        Kind::Int16 => build.int(i16::from_be_bytes(input.fixed()?).into()),
        Kind::Uint16 => build.int(u16::from_be_bytes(input.fixed()?).into()),
        Kind::Int32 => build.int(i32::from_be_bytes(input.fixed()?).into()),
        Kind::Uint32 => build.int(u32::from_be_bytes(input.fixed()?).into()),
        Kind::Int64 => build.int(i64::from_be_bytes(input.fixed()?)),
        Kind::Uint64 => build.uint64(u64::from_be_bytes(input.fixed()?)),
        Kind::Float64 => build.float64(f64::from_be_bytes(input.fixed()?)),
        Kind::Bool => build.boolean(input.fixed::<1>()? != [0]),
        Kind::Uuid => build.uuid(input.fixed()?),
        Kind::String | Kind::Bytes | Kind::Records | Kind::Struct => {
            unreachable!("{kind:?} has no fixed size")
        }
    }
}
