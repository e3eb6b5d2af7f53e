//! Encodes dicts by their schema: missing fields get the schema's default, unknown names are ignored. A struct may also be a
//! tuple of its fields in schema order, with all of them or with all but the tagged ones.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping, PyString, PyTuple};
use sharecore_wire::{Field, Kind, Layout, Output};

use crate::layout::Class;
use crate::parts::Parts;
use crate::uuids;

const NULL_STRUCT: u8 = 0xff;
const STRUCT: u8 = 1;

/// Encodes one struct.
pub(crate) fn write_record(
    layout: &Layout,
    classes: &[Class],
    message: &Bound<'_, PyAny>,
    out: &mut Parts,
) -> PyResult<()> {
    out.step(message.py())?;
    let copied;
    let message = if let Ok(dict) = message.cast::<PyDict>() {
        dict
    } else if let Ok(tuple) = message.cast::<PyTuple>() {
        return write_tuple(layout, classes, tuple, out);
    } else {
        copied = PyDict::new(message.py());
        copied.update(message.cast::<PyMapping>()?)?;
        &copied
    };
    let class = &classes[layout.id];
    for (place, field) in layout.fields.iter().enumerate() {
        if field.tag.is_none() {
            if let Some(value) = message.get_item(&class.names[place])? {
                write_field(field, layout.flexible, classes, &value, out)?;
            } else {
                let default = class.defaults[place].bind(message.py());
                write_default(field, layout.flexible, classes, default, out)?;
            }
        }
    }
    if layout.flexible {
        let names = &classes[layout.id].names;
        write_tagged(
            layout,
            classes,
            |place| message.get_item(&names[place]),
            out,
        )?;
    }
    Ok(())
}

fn write_tuple(
    layout: &Layout,
    classes: &[Class],
    values: &Bound<'_, PyTuple>,
    out: &mut Parts,
) -> PyResult<()> {
    let plain = layout.fields.iter().filter(|field| field.tag.is_none());
    // A decoded tuple has a value for each field; a handler's tuple omits tagged fields
    let whole = values.len() == layout.fields.len();
    if !whole && plain.clone().count() != values.len() {
        return Err(PyTypeError::new_err(format!(
            "got a tuple of {} values for a struct of {} fields",
            values.len(),
            plain.count()
        )));
    }
    if !whole || !layout.tagged() {
        for (field, value) in plain.zip(values.iter()) {
            write_field(field, layout.flexible, classes, &value, out)?;
        }
        if layout.flexible {
            out.buffer().push(0);
        }
        return Ok(());
    }
    for (place, field) in layout.fields.iter().enumerate() {
        if field.tag.is_none() {
            write_field(
                field,
                layout.flexible,
                classes,
                &values.get_item(place)?,
                out,
            )?;
        }
    }
    write_tagged(
        layout,
        classes,
        |place| values.get_item(place).map(Some),
        out,
    )
}

fn write_default(
    field: &Field,
    flexible: bool,
    classes: &[Class],
    default: &Bound<'_, PyAny>,
    out: &mut Parts,
) -> PyResult<()> {
    // A missing struct consists of defaults, unless it is nullable
    if field.kind == Kind::Struct && !field.array && !field.nullable {
        return write_field(field, flexible, classes, &PyDict::new(default.py()), out);
    }
    write_field(field, flexible, classes, default, out)
}

/// Encodes tagged fields that differ from their defaults; `value_of` returns a field's value by index.
fn write_tagged<'py>(
    layout: &Layout,
    classes: &[Class],
    value_of: impl Fn(usize) -> PyResult<Option<Bound<'py, PyAny>>>,
    out: &mut Parts,
) -> PyResult<()> {
    if !layout.tagged() {
        out.buffer().push(0);
        return Ok(());
    }
    let class = &classes[layout.id];
    let mut tagged = Vec::new();
    for (place, field) in layout.fields.iter().enumerate() {
        let Some(tag) = field.tag else { continue };
        let Some(value) = value_of(place)? else {
            continue;
        };
        if !value.eq(&class.defaults[place])? {
            tagged.push((tag, field, value));
        }
    }
    tagged.sort_by_key(|(tag, ..)| *tag);
    out.buffer().uvarint(tagged.len());
    for (tag, field, value) in tagged {
        let mut inner = Parts::joined(Vec::new());
        write_field(field, true, classes, &value, &mut inner)?;
        let buffer = out.buffer();
        buffer.uvarint(tag as usize);
        buffer.uvarint(inner.last().len());
        buffer.extend_from_slice(inner.last());
    }
    Ok(())
}

fn write_field(
    field: &Field,
    flexible: bool,
    classes: &[Class],
    value: &Bound<'_, PyAny>,
    out: &mut Parts,
) -> PyResult<()> {
    if field.fixed() {
        return write_fixed(field.kind, value, out.buffer());
    }
    if let (Some(layout), false) = (&field.layout, field.array) {
        if field.nullable {
            if value.is_none() {
                out.buffer().push(NULL_STRUCT);
                return Ok(());
            }
            out.buffer().push(STRUCT);
        }
        return write_record(layout, classes, value, out);
    }
    let short = field.kind == Kind::String && !field.array;
    if value.is_none() {
        if !field.nullable && field.kind != Kind::Records {
            return Err(PyTypeError::new_err(format!(
                "{} must not be None",
                field.name
            )));
        }
        return write_length(None, flexible, short, field, out);
    }
    if !field.array {
        return write_bytes(field, flexible, value, out);
    }
    if let (Kind::Int8, Ok(bytes)) = (field.kind, value.cast::<PyBytes>()) {
        write_length(Some(bytes.as_bytes().len()), flexible, short, field, out)?;
        out.bytes(bytes);
        return Ok(());
    }
    write_length(Some(value.len()?), flexible, short, field, out)?;
    if let Ok(list) = value.cast::<PyList>() {
        list.iter()
            .try_for_each(|item| write_item(field, flexible, classes, &item, out))
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple
            .iter()
            .try_for_each(|item| write_item(field, flexible, classes, &item, out))
    } else {
        value
            .try_iter()?
            .try_for_each(|item| write_item(field, flexible, classes, &item?, out))
    }
}

fn write_item(
    field: &Field,
    flexible: bool,
    classes: &[Class],
    item: &Bound<'_, PyAny>,
    out: &mut Parts,
) -> PyResult<()> {
    match &field.layout {
        Some(layout) => write_record(layout, classes, item, out),
        // Handlers provide bytes, or the elements of bytes
        None if field.kind == Kind::Int8 => write_fixed(Kind::Uint8, item, out.buffer()),
        None if field.kind.size().is_some() => write_fixed(field.kind, item, out.buffer()),
        None => write_bytes(field, flexible, item, out),
    }
}

fn write_length(
    length: Option<usize>,
    flexible: bool,
    short: bool,
    field: &Field,
    out: &mut Parts,
) -> PyResult<()> {
    if out.buffer().length(length, flexible, short) {
        return Ok(());
    }
    Err(PyOverflowError::new_err(format!(
        "{} is too long",
        field.name
    )))
}

fn write_bytes(
    field: &Field,
    flexible: bool,
    value: &Bound<'_, PyAny>,
    out: &mut Parts,
) -> PyResult<()> {
    if field.kind == Kind::String {
        let text = value.cast::<PyString>()?.to_cow()?;
        write_length(Some(text.len()), flexible, true, field, out)?;
        out.buffer().extend_from_slice(text.as_bytes());
    } else {
        let bytes = value.cast::<PyBytes>()?;
        write_length(Some(bytes.as_bytes().len()), flexible, false, field, out)?;
        out.bytes(bytes);
    }
    Ok(())
}

fn write_fixed(kind: Kind, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    match kind {
        Kind::Int8 => out.extend_from_slice(&value.extract::<i8>()?.to_be_bytes()),
        Kind::Uint8 => out.extend_from_slice(&value.extract::<u8>()?.to_be_bytes()),
        Kind::Int16 => out.extend_from_slice(&value.extract::<i16>()?.to_be_bytes()),
        Kind::Uint16 => out.extend_from_slice(&value.extract::<u16>()?.to_be_bytes()),
        Kind::Int32 => out.extend_from_slice(&value.extract::<i32>()?.to_be_bytes()),
        Kind::Uint32 => out.extend_from_slice(&value.extract::<u32>()?.to_be_bytes()),
        Kind::Int64 => out.extend_from_slice(&value.extract::<i64>()?.to_be_bytes()),
        Kind::Uint64 => out.extend_from_slice(&value.extract::<u64>()?.to_be_bytes()),
        Kind::Float64 => out.extend_from_slice(&value.extract::<f64>()?.to_be_bytes()),
        Kind::Bool => out.push(value.is_truthy()?.into()),
        Kind::Uuid => out.extend_from_slice(&uuids::bytes(value)?),
        Kind::String | Kind::Bytes | Kind::Records | Kind::Struct => {
            return Err(PyTypeError::new_err("this kind has no fixed size"));
        }
    }
    Ok(())
}
