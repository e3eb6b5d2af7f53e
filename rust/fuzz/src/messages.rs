//! Decodes frames, headers and messages of any schema from untrusted bytes.

use arbitrary::{Result, Unstructured};
use sharecore_wire::{
    Build, Cutter, Field, FrameTooLarge, Input, Kind, Layout, Malformed, Piece, read, read_header,
};

const FRAME_BYTES_MAX: usize = 300;
const DEPTH_MAX: u32 = 3;
const FIELDS_MAX: usize = 5;

/// Takes a schema and a message from the same bytes, and cuts all of them into a stream of pieces.
pub fn messages(data: &[u8]) {
    cut(data);
    let _ = read_header(&mut Input::new(data, 0));
    let mut u = Unstructured::new(data);
    // The schema ends when the bytes run out
    let Ok(layout) = layout(&mut u, DEPTH_MAX) else {
        return;
    };
    let message = u.take_rest();
    let mut count = Count {
        values: 0,
        content: 0,
    };
    let mut input = Input::new(message, 0);
    let outcome = read(&layout, &mut input, &mut count);
    assert!(input.at() <= message.len());
    assert!(count.content <= message.len(), "content out of nothing");
    // An element takes at least one byte, and has no more values than its struct has fields
    let each = (FIELDS_MAX + 2).pow(DEPTH_MAX + 1);
    assert!(
        count.values <= (message.len() + 1) * each,
        "values out of nothing"
    );
    if outcome.is_ok() {
        assert!(count.values > 0);
    }
}

/// A stream yields the same frames however it is cut.
fn cut(data: &[u8]) {
    let frames = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut cutter, mut cut) = (Cutter::default(), Vec::new());
        let (mut partial, mut missing) = (Vec::new(), 0);
        for mut chunk in pieces {
            if missing > 0 {
                let (rest, behind) = chunk.split_at(chunk.len().min(missing));
                partial.extend_from_slice(rest);
                missing -= rest.len();
                chunk = behind;
                if missing == 0 {
                    cut.push(std::mem::take(&mut partial));
                }
            }
            loop {
                match cutter.cut(&mut chunk, FRAME_BYTES_MAX) {
                    Ok(None) => break,
                    Ok(Some(Piece::Frame(frame))) => cut.push(frame.to_vec()),
                    Ok(Some(Piece::Start { size, bytes })) => {
                        (partial, missing) = (bytes.to_vec(), size - bytes.len());
                    }
                    Err(refused) => return (cut, Err(refused)),
                }
            }
        }
        (cut, std::result::Result::<(), FrameTooLarge>::Ok(()))
    };
    let size = usize::from(data.first().copied().unwrap_or(0)) + 1;
    let (whole, refused) = frames(&mut std::iter::once(data));
    assert!(whole.iter().all(|frame| frame.len() <= FRAME_BYTES_MAX));
    assert_eq!(frames(&mut data.chunks(size)), (whole, refused));
}

fn layout(u: &mut Unstructured<'_>, depth: u32) -> Result<Layout> {
    let flexible = u.arbitrary()?;
    let fields = (0..u.int_in_range(0..=FIELDS_MAX)?)
        .map(|number| field(u, depth, flexible, number as u32))
        .collect::<Result<_>>()?;
    Ok(Layout::new(0, flexible, fields))
}

fn field(u: &mut Unstructured<'_>, depth: u32, flexible: bool, number: u32) -> Result<Field> {
    let kinds = [
        Kind::Int8,
        Kind::Uint8,
        Kind::Int16,
        Kind::Uint16,
        Kind::Int32,
        Kind::Uint32,
        Kind::Int64,
        Kind::Uint64,
        Kind::Float64,
        Kind::Bool,
        Kind::Uuid,
        Kind::String,
        Kind::Bytes,
        Kind::Records,
        Kind::Struct,
    ];
    let kinds = if depth == 0 { &kinds[..14] } else { &kinds[..] };
    let kind = *u.choose(kinds)?;
    Ok(Field {
        name: format!("field_{number}"),
        kind,
        array: u.arbitrary()?,
        nullable: u.arbitrary()?,
        tag: (flexible && u.arbitrary()?).then_some(number),
        layout: if kind == Kind::Struct {
            Some(layout(u, depth - 1)?)
        } else {
            None
        },
    })
}

/// Counts the values that it builds.
struct Count {
    values: usize,
    content: usize,
}

impl Count {
    fn add(&mut self, content: usize) {
        self.values += 1;
        self.content += content;
    }
}

impl Build<'_> for Count {
    type Value = ();
    type Error = Malformed;

    fn int(&mut self, _: i64) -> std::result::Result<(), Malformed> {
        self.add(0);
        Ok(())
    }

    fn uint64(&mut self, _: u64) -> std::result::Result<(), Malformed> {
        self.add(8);
        Ok(())
    }

    fn float64(&mut self, _: f64) -> std::result::Result<(), Malformed> {
        self.add(8);
        Ok(())
    }

    fn boolean(&mut self, _: bool) -> std::result::Result<(), Malformed> {
        self.add(1);
        Ok(())
    }

    fn uuid(&mut self, _: [u8; 16]) -> std::result::Result<(), Malformed> {
        self.add(16);
        Ok(())
    }

    fn string(&mut self, value: &str) -> std::result::Result<(), Malformed> {
        self.add(value.len());
        Ok(())
    }

    fn bytes(&mut self, value: &[u8]) -> std::result::Result<(), Malformed> {
        self.add(value.len());
        Ok(())
    }

    fn array(&mut self, _: Vec<()>) -> std::result::Result<(), Malformed> {
        self.add(0);
        Ok(())
    }

    fn record(&mut self, layout: &Layout, values: Vec<()>) -> std::result::Result<(), Malformed> {
        assert_eq!(values.len(), layout.fields.len());
        self.add(0);
        Ok(())
    }

    fn null(&mut self) -> std::result::Result<(), Malformed> {
        self.add(0);
        Ok(())
    }

    fn default(&mut self, layout: &Layout, field: usize) -> std::result::Result<(), Malformed> {
        assert!(layout.fields[field].tag.is_some());
        self.add(0);
        Ok(())
    }
}
