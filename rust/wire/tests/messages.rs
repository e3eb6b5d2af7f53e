//! Frames, headers and messages, from correct and from incorrect bytes.

use sharecore_wire::{
    Build, Cutter, Field, FrameTooLarge, Held, Input, Kind, Layout, Malformed, Output, Piece,
    Value, count_entries, read, read_header, write,
};

/// Prints the values that it builds.
struct Text;

impl Build<'_> for Text {
    type Value = String;
    type Error = Malformed;

    fn int(&mut self, value: i64) -> Result<String, Malformed> {
        Ok(value.to_string())
    }

    fn uint64(&mut self, value: u64) -> Result<String, Malformed> {
        Ok(value.to_string())
    }

    fn float64(&mut self, value: f64) -> Result<String, Malformed> {
        Ok(value.to_string())
    }

    fn boolean(&mut self, value: bool) -> Result<String, Malformed> {
        Ok(value.to_string())
    }

    fn uuid(&mut self, value: [u8; 16]) -> Result<String, Malformed> {
        Ok(format!("{:x}", u128::from_be_bytes(value)))
    }

    fn string(&mut self, value: &str) -> Result<String, Malformed> {
        Ok(format!("{value:?}"))
    }

    fn bytes(&mut self, value: &[u8]) -> Result<String, Malformed> {
        Ok(format!("{value:?}"))
    }

    fn array(&mut self, values: Vec<String>) -> Result<String, Malformed> {
        Ok(format!("[{}]", values.join(" ")))
    }

    fn record(&mut self, _: &Layout, values: Vec<String>) -> Result<String, Malformed> {
        Ok(format!("({})", values.join(" ")))
    }

    fn null(&mut self) -> Result<String, Malformed> {
        Ok("null".into())
    }

    fn default(&mut self, layout: &Layout, field: usize) -> Result<String, Malformed> {
        Ok(format!("no {}", layout.fields[field].name))
    }
}

fn field(name: &str, kind: Kind) -> Field {
    Field {
        name: name.into(),
        kind,
        array: false,
        nullable: false,
        tag: None,
        layout: None,
    }
}

fn shown(layout: &Layout, data: &[u8]) -> Result<String, String> {
    read(layout, &mut Input::new(data, 0), &mut Text).map_err(|error| error.to_string())
}

#[test]
fn compact_and_wide_lengths() {
    let fields = || {
        let mut names = field("names", Kind::String);
        names.array = true;
        vec![field("id", Kind::Int16), field("name", Kind::String), names]
    };
    let compact = [0, 7, 3, b'a', b'b', 3, 2, b'x', 1, 0];
    let wide = [0, 7, 0, 2, b'a', b'b', 0, 0, 0, 2, 0, 1, b'x', 0, 0];
    let expected = Ok(r#"(7 "ab" ["x" ""])"#.to_string());
    assert_eq!(shown(&Layout::new(0, true, fields()), &compact), expected);
    assert_eq!(shown(&Layout::new(0, false, fields()), &wide), expected);
}

#[test]
fn tagged_fields_come_in_any_order_or_not_at_all() {
    let tagged = |name, kind, tag| Field {
        tag: Some(tag),
        ..field(name, kind)
    };
    let fields = vec![
        tagged("first", Kind::Int8, 0),
        field("plain", Kind::Bool),
        tagged("second", Kind::String, 1),
    ];
    let layout = Layout::new(0, true, fields);
    assert_eq!(
        shown(&layout, &[1, 0]),
        Ok("(no first true no second)".into())
    );
    // Tag 9 is unknown and skipped
    let all = [0, 3, 1, 2, 2, b'x', 9, 1, 0xff, 0, 1, 5];
    assert_eq!(shown(&layout, &all), Ok(r#"(5 false "x")"#.into()));
    // A known field is read whatever size is declared for it, as in Apache Kafka
    for size in [0, 1, 9, 127] {
        let lies = [0, 2, 1, size, 2, b'x', 0, size, 5];
        assert_eq!(shown(&layout, &lies), Ok(r#"(5 false "x")"#.into()));
    }
    let past = [0, 1, 9, 2, b'x'];
    assert_eq!(
        shown(&layout, &past),
        Err("tagged field reaches past the end".into())
    );
    let empty = [0, 1, 0, 1];
    assert_eq!(
        shown(&layout, &empty),
        Err("the message ends too early".into())
    );
}

#[test]
fn what_may_be_null_is_and_what_may_not_is_refused() {
    let nullable = |name, kind| Field {
        nullable: true,
        ..field(name, kind)
    };
    let inner = Layout::new(1, false, vec![field("x", Kind::Int8)]);
    let nested = Field {
        layout: Some(inner),
        ..nullable("nested", Kind::Struct)
    };
    let fields = vec![
        nullable("name", Kind::String),
        field("records", Kind::Records),
        nested,
    ];
    let layout = Layout::new(0, true, fields);
    assert_eq!(
        shown(&layout, &[0, 0, 0xff, 0]),
        Ok("(null null null)".into())
    );
    assert_eq!(
        shown(&layout, &[1, 1, 1, 4, 0]),
        Ok(r#"("" [] (4))"#.into())
    );
    let strict = Layout::new(0, true, vec![field("name", Kind::String)]);
    assert_eq!(shown(&strict, &[0, 0]), Err("name must not be null".into()));
    assert_eq!(
        shown(&strict, &[2, 0xff, 0]),
        Err("name is not UTF-8".into())
    );
}

#[test]
fn an_array_claims_no_more_than_its_bytes_can_hold() {
    let inner = Layout::new(
        1,
        false,
        vec![field("a", Kind::Int64), field("b", Kind::String)],
    );
    let array = Field {
        array: true,
        layout: Some(inner),
        ..field("each", Kind::Struct)
    };
    let layout = Layout::new(0, false, vec![array]);
    let mut data = i32::MAX.to_be_bytes().to_vec();
    data.extend([0; 64]);
    assert_eq!(
        shown(&layout, &data),
        Err("each reaches past the end".into())
    );
    assert!(shown(&layout, &[0, 0, 0, 0]).is_ok());
}

#[test]
fn a_header_is_read_or_says_why_not() {
    let frame = [0, 78, 0, 2, 0, 0, 0, 9, 0, 2, b'm', b'e', 0];
    let mut input = Input::new(&frame, 0);
    let header = read_header(&mut input).expect("a header");
    assert_eq!(
        (header.api_key, header.api_version, header.correlation_id),
        (78, 2, 9)
    );
    assert_eq!((header.client_id, input.at()), (Some("me"), 12));
    let refused = |frame: &[u8]| {
        read_header(&mut Input::new(frame, 0))
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        refused(&frame[..9]),
        Err("a frame of 9 bytes holds no request header".into())
    );
    assert_eq!(
        refused(&frame[..11]),
        Err("the client id reaches past the end".into())
    );
    let mut strange = frame;
    strange[10] = 0xff;
    assert_eq!(refused(&strange), Err("the client id is not UTF-8".into()));
    strange[8..10].copy_from_slice(&(-1_i16).to_be_bytes());
    assert_eq!(refused(&strange), Ok(()));
}

#[test]
fn frames_come_whole_and_not_too_large() {
    let stream = [0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 3];
    for size in 1..=stream.len() {
        let whole = frames(&mut stream.chunks(size), 2).unwrap();
        assert_eq!(whole, [vec![1, 2], vec![], vec![3]]);
    }
    for size in [3, -1, i32::MAX] {
        let outcome = frames(&mut std::iter::once(&size.to_be_bytes()[..]), 2);
        assert_eq!(outcome, Err(FrameTooLarge { size, limit: 2 }));
    }
}

fn frames(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    bytes_max: usize,
) -> Result<Vec<Vec<u8>>, FrameTooLarge> {
    let (mut cutter, mut whole, mut partial) = (Cutter::default(), Vec::new(), Vec::new());
    let mut missing = 0;
    for mut chunk in pieces {
        if missing > 0 {
            let (rest, behind) = chunk.split_at(missing.min(chunk.len()));
            partial.extend_from_slice(rest);
            missing -= rest.len();
            chunk = behind;
            if missing == 0 {
                whole.push(std::mem::take(&mut partial));
            }
        }
        while let Some(piece) = cutter.cut(&mut chunk, bytes_max)? {
            match piece {
                Piece::Frame(frame) => whole.push(frame.to_vec()),
                Piece::Start { size, bytes } => {
                    partial = bytes.to_vec();
                    missing = size - bytes.len();
                }
            }
        }
    }
    Ok(whole)
}

#[test]
fn a_string_has_the_same_bound_however_its_length_is_written() {
    for array in [false, true] {
        let field = Field {
            name: "name".into(),
            kind: Kind::String,
            array,
            nullable: false,
            tag: None,
            layout: None,
        };
        let layout = Layout::new(0, true, vec![field]);
        for (size, fits) in [(32_767, true), (32_768, false), (8 << 20, false)] {
            let mut bytes = Vec::new();
            if array {
                bytes.uvarint(2);
            }
            bytes.uvarint(size + 1);
            bytes.resize(bytes.len() + size, b'x');
            bytes.push(0);
            let outcome = read(&layout, &mut Input::new(&bytes, 0), &mut Held);
            assert_eq!(outcome.is_ok(), fits, "{size}");
        }
    }
}

#[test]
fn varints_and_lengths_come_back() {
    for value in [0, 1, 127, 128, 300, 1 << 20, (1 << 35) - 1] {
        let mut out = Vec::new();
        out.uvarint(value);
        assert_eq!(Input::new(&out, 0).uvarint(), Ok(value as u64));
    }
    assert!(Input::new(&[0x80; 6], 0).uvarint().is_err());
    let mut out = Vec::new();
    assert!(
        !out.length(Some(1 << 15), false, true),
        "a string of two length bytes"
    );
    assert!(out.is_empty());
    assert!(
        out.length(None, false, true)
            && out.length(Some(2), false, false)
            && out.length(None, true, false)
    );
    assert_eq!(out, [0xff, 0xff, 0, 0, 0, 2, 0]);
}

#[test]
fn what_was_read_as_values_is_written_as_it_was() {
    let array = |name, kind| Field {
        array: true,
        ..field(name, kind)
    };
    let nullable = |name, kind| Field {
        nullable: true,
        ..field(name, kind)
    };
    let tagged = Field {
        tag: Some(3),
        ..field("tagged", Kind::Int64)
    };
    let inner = Layout::new(1, true, vec![field("index", Kind::Int32), tagged]);
    let fields = vec![
        field("id", Kind::Uuid),
        nullable("name", Kind::String),
        field("share", Kind::Float64),
        array("types", Kind::Int8),
        array("numbers", Kind::Int16),
        array("names", Kind::String),
        field("records", Kind::Records),
        Field {
            layout: Some(inner.clone()),
            ..array("parts", Kind::Struct)
        },
        Field {
            layout: Some(inner),
            ..nullable("part", Kind::Struct)
        },
    ];
    let layout = Layout::new(0, true, fields);
    let part = |index, tagged| Value::Record(vec![Value::Int(index), tagged]);
    let message = |name, part| {
        Value::Record(vec![
            Value::Uuid([7; 16]),
            name,
            Value::Float(0.5),
            Value::Bytes(&[1, 2]),
            Value::Array(vec![Value::Int(-1), Value::Int(300)]),
            Value::Array(vec![Value::Text("x"), Value::Text("")]),
            Value::Bytes(b"batch"),
            Value::Array(vec![part]),
            Value::Null,
        ])
    };
    for message in [
        message(Value::Null, part(-5, Value::Absent)),
        message(Value::Text("name"), part(1 << 30, Value::Int(1 << 40))),
    ] {
        let mut out = Vec::new();
        write(&layout, &message, &mut out).expect("it fits");
        let mut input = Input::new(&out, 0);
        assert_eq!(read(&layout, &mut input, &mut Held), Ok(message));
        assert_eq!(input.at(), out.len());
    }
}

#[test]
fn values_that_do_not_fit_are_named_by_their_field() {
    let layout = Layout::new(0, false, vec![field("id", Kind::Int16)]);
    let unfit = |value| {
        let written = write(&layout, &value, &mut Vec::new());
        written.expect_err("it does not fit").to_string()
    };
    let text = unfit(Value::Record(vec![Value::Text("x")]));
    assert_eq!(text, "id does not hold such a value");
    let struct_of = unfit(Value::Record(vec![]));
    assert_eq!(struct_of, "a struct of 1 fields does not hold such a value");
    assert_eq!(unfit(Value::Null), "a struct does not hold such a value");
}

#[test]
fn entries_are_counted_in_every_array_and_bounded() {
    let names = Field {
        array: true,
        ..field("names", Kind::String)
    };
    let inner = Layout::new(1, false, vec![names]);
    let topics = Field {
        array: true,
        layout: Some(inner),
        ..field("topics", Kind::Struct)
    };
    let layout = Layout::new(0, false, vec![topics]);
    // Two topics with one name and three
    let bytes = b"\0\0\0\x02\0\0\0\x01\0\x01a\0\0\0\x03\0\x01a\0\x01b\0\x01c";
    let count = |most| count_entries(&layout, &mut Input::new(bytes, 0), most);
    assert_eq!(count(6), Ok(6));
    let error = count(5).unwrap_err();
    assert_eq!(error.to_string(), "it has more than 5 entries in all");
    assert!(count_entries(&layout, &mut Input::new(&bytes[..20], 0), 6).is_err());
}
