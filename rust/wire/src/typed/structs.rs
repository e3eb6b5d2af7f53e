//! The macro that defines structs from schemas.

use crate::input::{Input, Malformed};
use crate::output::Output;

/// Reads the tagged fields at the end of a struct; `known` reads a tag it knows and returns whether it did.
pub(super) fn read_tagged<'a>(
    input: &mut Input<'a>,
    mut known: impl FnMut(u64, &mut Input<'a>) -> Result<bool, Malformed>,
) -> Result<(), Malformed> {
    for _ in 0..input.uvarint()? {
        let tag = input.uvarint()?;
        let mut value = input.clone();
        // Apache Kafka ignores this size too and trusts the field itself
        value.uvarint()?;
        if known(tag, &mut value)? {
            *input = value;
        } else {
            input.skip_tagged_field()?;
        }
    }
    Ok(())
}

/// Writes the tagged fields at the end of a struct.
pub(super) fn write_tagged(mut fields: Vec<(u32, Vec<u8>)>, out: &mut Vec<u8>) {
    fields.sort_by_key(|(tag, _)| *tag);
    out.uvarint(fields.len());
    for (tag, bytes) in fields {
        out.uvarint(tag as usize);
        out.uvarint(bytes.len());
        out.extend_from_slice(&bytes);
    }
}

/// Defines structs: each field with its type, versions, tag if it has one, and default.
///
/// A struct with `message` is a whole message: its versions, and the first with compact lengths.
macro_rules! structs {
    () => {};
    (
        struct $name:ident<$life:lifetime> $(message $versions:literal..=$last:literal flexible $flexible:literal)?
        { $($body:tt)* }
        $($rest:tt)*
    ) => {
        $crate::typed::structs::structs!(@one $name [<$life>] $life { $($body)* });
        $(
            impl<$life> $crate::typed::Message<$life> for $name<$life> {
                const NAME: &'static str = stringify!($name);
                const VERSIONS: std::ops::RangeInclusive<i16> = $versions..=$last;
                const FLEXIBLE_SINCE: i16 = $flexible;
            }
        )?
        $crate::typed::structs::structs!($($rest)*);
    };
    (
        struct $name:ident { $($body:tt)* }
        $($rest:tt)*
    ) => {
        $crate::typed::structs::structs!(@one $name [] 'a { $($body)* });
        $crate::typed::structs::structs!($($rest)*);
    };
    (@one $name:ident [$($generic:tt)*] $life:lifetime {
        $($field:ident: $type:ty [$first:literal..=$last:literal $(, tag $tag:literal)?] = $default:expr;)*
    }) => {
        #[doc = concat!("`", stringify!($name), "` of Kafka's schemas.")]
        #[allow(missing_docs, reason = "Kafka's schemas describe them")]
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name $($generic)* {
            $(pub $field: $type,)*
        }

        impl $($generic)* Default for $name $($generic)* {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl<$life> $crate::typed::Struct<$life> for $name $($generic)* {
            fn schema(form: $crate::typed::Form) -> $crate::layout::Layout {
                #[allow(unused_mut, reason = "fields without a tag change nothing")]
                let fields = [$(
                    ($first..=$last).contains(&form.version).then(|| {
                        let mut field = <$type as $crate::typed::Part<$life>>::field(stringify!($field), form);
                        $(field.tag = Some($tag);)?
                        field
                    }),
                )*];
                let fields = fields.into_iter().flatten().collect();
                $crate::layout::Layout::new(0, form.flexible, fields)
            }
        }

        impl<$life> $crate::typed::Part<$life> for $name $($generic)* {
            const FIELD_BYTES: usize = 1;

            #[allow(unused_mut, reason = "a struct may have tagged fields alone")]
            fn element_bytes(form: $crate::typed::Form) -> usize {
                let mut bytes = 0;
                $(
                    if $crate::typed::structs::plain!($($tag)?) && ($first..=$last).contains(&form.version) {
                        bytes += <$type as $crate::typed::Part<$life>>::FIELD_BYTES;
                    }
                )*
                bytes.max(1)
            }

            #[inline]
            fn read(
                _: &str,
                form: $crate::typed::Form,
                input: &mut $crate::input::Input<$life>,
            ) -> Result<Self, $crate::input::Malformed> {
                let mut made = Self::default();
                $(
                    if $crate::typed::structs::plain!($($tag)?) && ($first..=$last).contains(&form.version) {
                        made.$field = $crate::typed::Part::read(stringify!($field), form, input)?;
                    }
                )*
                if form.flexible {
                    $crate::typed::structs::read_tagged(input, |tag, value| {
                        $($(
                            if tag == $tag && ($first..=$last).contains(&form.version) {
                                made.$field = $crate::typed::Part::read(stringify!($field), form, value)?;
                                return Ok(true);
                            }
                        )?)*
                        let _ = (tag, value);
                        Ok(false)
                    })?;
                }
                Ok(made)
            }

            #[inline]
            fn write<S: $crate::value::Sink>(
                &self,
                _: &str,
                form: $crate::typed::Form,
                out: &mut S,
            ) -> Result<(), $crate::value::Unfit> {
                $(
                    if $crate::typed::structs::plain!($($tag)?) && ($first..=$last).contains(&form.version) {
                        $crate::typed::Part::write(&self.$field, stringify!($field), form, out)?;
                    }
                )*
                if form.flexible {
                    #[allow(unused_mut, reason = "few structs have tagged fields")]
                    let mut tagged: Vec<(u32, Vec<u8>)> = Vec::new();
                    $($(
                        let default: $type = $default;
                        if ($first..=$last).contains(&form.version) && self.$field != default {
                            let mut bytes = Vec::new();
                            $crate::typed::Part::write(&self.$field, stringify!($field), form, &mut bytes)?;
                            tagged.push(($tag, bytes));
                        }
                    )?)*
                    $crate::typed::structs::write_tagged(tagged, out.buffer());
                }
                Ok(())
            }

            fn field(name: &str, form: $crate::typed::Form) -> $crate::layout::Field {
                $crate::layout::Field {
                    name: name.into(),
                    kind: $crate::layout::Kind::Struct,
                    array: false,
                    nullable: false,
                    tag: None,
                    layout: Some(<Self as $crate::typed::Struct<$life>>::schema(form)),
                }
            }
        }
    };
}

/// Whether a field has no tag.
macro_rules! plain {
    () => {
        true
    };
    ($tag:literal) => {
        false
    };
}

pub(super) use {plain, structs};
