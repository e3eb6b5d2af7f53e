//! Layouts: a message's schema in one version.

/// The type of a field, or of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float64,
    Bool,
    Uuid,
    String,
    Bytes,
    /// Record batches: bytes that may be null in any version.
    Records,
    Struct,
}

impl Kind {
    /// Return the kind of a type name, as kio's schemas have it.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "int8" => Kind::Int8,
            "uint8" => Kind::Uint8,
            "int16" | "error_code" => Kind::Int16,
            "uint16" => Kind::Uint16,
            "int32" | "timedelta_i32" => Kind::Int32,
            "uint32" => Kind::Uint32,
            "int64" | "timedelta_i64" | "datetime_i64" => Kind::Int64,
            "uint64" => Kind::Uint64,
            "float64" => Kind::Float64,
            "bool" => Kind::Bool,
            "uuid" => Kind::Uuid,
            "string" => Kind::String,
            "bytes" => Kind::Bytes,
            "records" => Kind::Records,
            "struct" => Kind::Struct,
            _ => return None,
        })
    }

    /// Encoded size of a value; `None` for variable-size types.
    pub fn size(self) -> Option<usize> {
        match self {
            Kind::Int8 | Kind::Uint8 | Kind::Bool => Some(1),
            Kind::Int16 | Kind::Uint16 => Some(2),
            Kind::Int32 | Kind::Uint32 => Some(4),
            Kind::Int64 | Kind::Uint64 | Kind::Float64 => Some(8),
            Kind::Uuid => Some(16),
            Kind::String | Kind::Bytes | Kind::Records | Kind::Struct => None,
        }
    }
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name in errors.
    pub name: String,
    /// Its type, or that of its elements.
    pub kind: Kind,
    /// Whether it is an array.
    pub array: bool,
    /// Whether it may be null.
    pub nullable: bool,
    /// Its tag; `None` for a field that is always present.
    pub tag: Option<u32>,
    /// The fields of a struct.
    pub layout: Option<Layout>,
}

impl Field {
    /// Whether its encoded size is constant.
    pub fn fixed(&self) -> bool {
        !self.array && self.kind.size().is_some()
    }
}

/// A message, or a struct in it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its ID for a [`Build`](crate::Build).
    pub id: usize,
    /// Whether lengths are compact and fields may be tagged.
    pub flexible: bool,
    /// In the order of the schema.
    pub fields: Vec<Field>,
    /// Whether any of them is tagged.
    tagged: bool,
    /// The smallest encoded size.
    bytes_min: usize,
}

impl Layout {
    /// A layout with these fields.
    pub fn new(id: usize, flexible: bool, fields: Vec<Field>) -> Self {
        let plain = fields.iter().filter(|field| field.tag.is_none());
        let size = |field: &Field| {
            if field.array {
                1
            } else {
                field.kind.size().unwrap_or(1)
            }
        };
        let bytes_min = plain.map(size).sum::<usize>().max(1);
        let tagged = fields.iter().any(|field| field.tag.is_some());
        Layout {
            id,
            flexible,
            fields,
            tagged,
            bytes_min,
        }
    }

    /// Whether any of its fields is tagged.
    pub fn tagged(&self) -> bool {
        self.tagged
    }

    /// Whether another layout has the same fields, whatever its ID.
    pub fn is_like(&self, other: &Layout) -> bool {
        let alike = |(own, theirs): (&Field, &Field)| {
            // records may be null wherever they are
            let nullable = |field: &Field| field.nullable || field.kind == Kind::Records;
            let plain = |field: &Field| (field.kind, field.array, nullable(field), field.tag);
            let inner = match (&own.layout, &theirs.layout) {
                (Some(own), Some(theirs)) => own.is_like(theirs),
                (None, None) => true,
                _ => false,
            };
            own.name == theirs.name && plain(own) == plain(theirs) && inner
        };
        self.flexible == other.flexible
            && self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(alike)
    }

    /// The smallest encoded size, at least 1: this bounds the number of elements of an array.
    pub fn bytes_min(&self) -> usize {
        self.bytes_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_have_the_size_of_their_kind() {
        for (name, size) in [
            ("int8", Some(1)),
            ("error_code", Some(2)),
            ("timedelta_i32", Some(4)),
            ("datetime_i64", Some(8)),
            ("uuid", Some(16)),
            ("records", None),
        ] {
            let kind = Kind::named(name).expect("a known name");
            assert_eq!(kind.size(), size, "{name}");
        }
        assert_eq!(Kind::named("int128"), None);
    }
}
