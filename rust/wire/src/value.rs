//! Messages as Rust values: read without copying their bytes, and written.

use std::fmt;

use crate::input::Malformed;
use crate::layout::{Field, Kind, Layout};
use crate::output::Output;
use crate::read::Build;

/// A message or a part of it; strings and bytes borrow from their source.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Null, where the schema allows it.
    Null,
    /// The schema's default: an absent tagged field.
    Absent,
    /// An integer or a bool of any type.
    Int(i64),
    /// A float64.
    Float(f64),
    /// A UUID; all zeros means none.
    Uuid([u8; 16]),
    /// A string.
    Text(&'a str),
    /// Bytes, record batches, and arrays of int8.
    Bytes(&'a [u8]),
    /// Bytes held by the [`Sink`].
    Far {
        /// Their length.
        len: usize,
        /// Their ID in the sink.
        id: usize,
    },
    /// An array.
    Array(Vec<Value<'a>>),
    /// A struct, its fields in the order of the schema.
    Record(Vec<Value<'a>>),
}

/// Builds [`Value`]s.
#[derive(Debug)]
pub struct Held;

impl<'a> Build<'a> for Held {
    type Value = Value<'a>;
    type Error = Malformed;

    fn int(&mut self, value: i64) -> Result<Value<'a>, Malformed> {
        Ok(Value::Int(value))
    }

    fn uint64(&mut self, value: u64) -> Result<Value<'a>, Malformed> {
        Ok(Value::Int(value as i64))
    }

    fn float64(&mut self, value: f64) -> Result<Value<'a>, Malformed> {
        Ok(Value::Float(value))
    }

    fn boolean(&mut self, value: bool) -> Result<Value<'a>, Malformed> {
        Ok(Value::Int(value.into()))
    }

    fn uuid(&mut self, value: [u8; 16]) -> Result<Value<'a>, Malformed> {
        Ok(Value::Uuid(value))
    }

    fn string(&mut self, value: &'a str) -> Result<Value<'a>, Malformed> {
        Ok(Value::Text(value))
    }

    fn bytes(&mut self, value: &'a [u8]) -> Result<Value<'a>, Malformed> {
        Ok(Value::Bytes(value))
    }

    fn array(&mut self, values: Vec<Value<'a>>) -> Result<Value<'a>, Malformed> {
        Ok(Value::Array(values))
    }

    fn record(&mut self, _: &Layout, values: Vec<Value<'a>>) -> Result<Value<'a>, Malformed> {
        Ok(Value::Record(values))
    }

    fn null(&mut self) -> Result<Value<'a>, Malformed> {
        Ok(Value::Null)
    }

    fn default(&mut self, _: &Layout, _: usize) -> Result<Value<'a>, Malformed> {
        Ok(Value::Absent)
    }
}

/// A value that does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} does not hold such a value", self.0)
    }
}

impl std::error::Error for Unfit {}

/// The output of a message.
pub trait Sink {
    /// The buffer to append to.
    fn buffer(&mut self) -> &mut Vec<u8>;
    /// Appends bytes of its own; returns false for an unknown ID.
    fn far(&mut self, id: usize) -> bool;
}

impl Sink for Vec<u8> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self
    }

    fn far(&mut self, _: usize) -> bool {
        false
    }
}

/// Builds a struct from values by field name.
pub fn record<'a>(layout: &Layout, value_of: impl FnMut(&Field) -> Value<'a>) -> Value<'a> {
    Value::Record(layout.fields.iter().map(value_of).collect())
}

/// Builds a value for a struct field, or an array of them.
pub fn inner<'a>(field: &Field, value_of: impl FnOnce(&Layout) -> Value<'a>) -> Value<'a> {
    field.layout.as_ref().map_or(Value::Absent, value_of)
}

/// Writes a struct: a [`Value::Record`] with a value for each field of the layout.
pub fn write<S: Sink>(layout: &Layout, value: &Value<'_>, out: &mut S) -> Result<(), Unfit> {
    let Value::Record(values) = value else {
        return Err(Unfit("a struct".into()));
    };
    if values.len() != layout.fields.len() {
        return Err(Unfit(format!("a struct of {} fields", layout.fields.len())));
    }
    let fields = || layout.fields.iter().zip(values);
    for (field, value) in fields().filter(|(field, _)| field.tag.is_none()) {
        write_field(field, layout.flexible, value, out)?;
    }
    if !layout.flexible {
        return Ok(());
    }
    let is_written = |(field, value): &(&Field, &Value<'_>)| {
        field.tag.is_some() && !matches!(value, Value::Absent)
    };
    let mut tagged: Vec<_> = fields().filter(is_written).collect();
    tagged.sort_by_key(|(field, _)| field.tag);
    out.buffer().uvarint(tagged.len());
    for (field, value) in tagged {
        let mut inner = Vec::new();
        write_field(field, true, value, &mut inner)?;
        let out = out.buffer();
        out.uvarint(field.tag.unwrap_or_default() as usize);
        out.uvarint(inner.len());
        out.extend_from_slice(&inner);
    }
    Ok(())
}

fn write_field<S: Sink>(
    field: &Field,
    flexible: bool,
    value: &Value<'_>,
    out: &mut S,
) -> Result<(), Unfit> {
    let unfit = || Unfit(field.name.clone());
    if field.fixed() {
        return write_fixed(field.kind, value, out.buffer()).ok_or_else(unfit);
    }
    if let (Some(layout), false) = (&field.layout, field.array) {
        if field.nullable {
            let is_null = matches!(value, Value::Null);
            out.buffer().push(if is_null { 0xff } else { 1 });
            if is_null {
                return Ok(());
            }
        }
        return write(layout, value, out);
    }
    let short = field.kind == Kind::String && !field.array;
    let length = match value {
        Value::Null if field.nullable || field.kind == Kind::Records => None,
        Value::Text(text) if short => Some(text.len()),
        Value::Bytes(bytes) if !field.array || field.kind == Kind::Int8 => Some(bytes.len()),
        Value::Far { len, .. } if !field.array && !short => Some(*len),
        Value::Array(values) if field.array => Some(values.len()),
        _ => return Err(unfit()),
    };
    if !out.buffer().length(length, flexible, short) {
        return Err(unfit());
    }
    match value {
        Value::Text(text) => out.buffer().extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) => out.buffer().extend_from_slice(bytes),
        Value::Far { id, .. } if !out.far(*id) => return Err(unfit()),
        Value::Array(values) => {
            for each in values {
                match (&field.layout, each) {
                    (Some(layout), _) => write(layout, each, out)?,
                    (None, Value::Text(text)) if field.kind == Kind::String => {
                        if !out.buffer().length(Some(text.len()), flexible, true) {
                            return Err(unfit());
                        }
                        out.buffer().extend_from_slice(text.as_bytes());
                    }
                    (None, _) => write_fixed(field.kind, each, out.buffer()).ok_or_else(unfit)?,
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn write_fixed(kind: Kind, value: &Value<'_>, out: &mut Vec<u8>) -> Option<()> {
    match (kind, value) {
        (Kind::Uuid, Value::Uuid(id)) => out.extend_from_slice(id),
        (Kind::Float64, Value::Float(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Kind::Uuid | Kind::Float64, _) => return None,
        (_, Value::Int(value)) => out.extend_from_slice(&value.to_be_bytes()[8 - kind.size()?..]),
        _ => return None,
    }
    Some(())
}
