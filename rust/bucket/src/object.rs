//! Journal objects: a header of 112 bytes and a body.
//!
//! Header, little endian: magic (8), kind (1), zeros (3), epoch (4), writer (16), place (8), answered (8), milliseconds
//! since 1970 (8), segment (8), position of the first frame in it (8), number of the first frame (8), frames (4), length
//! of the body (8), checksum of the body (4), header checksum of the object before (4), zeros (8), checksum (4).

use crate::fields::{Fields, Out};

/// Bytes before the body of a journal object.
pub const HEADER: usize = 112;
const MAGIC: [u8; 8] = *b"SCobj-1\n";

/// One run of one process: random, never reused.
pub type Writer = [u8; 16];

/// The kind of a journal object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whole frames of the store's journal.
    Frames,
    /// The start of a writer's epoch.
    Claim,
    /// A heartbeat.
    Beat,
    /// The writer has ended: the next one may claim at once.
    Release,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Frames, Self::Claim, Self::Beat, Self::Release];

    fn number(self) -> u8 {
        Self::ALL
            .iter()
            .position(|kind| *kind == self)
            .map_or(0, |at| at as u8 + 1)
    }
}

/// Frames of one journal segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Frames {
    /// The segment that they are in, and the position of the first.
    pub segment: u64,
    /// See `segment`.
    pub at: u64,
    /// Number of the first frame, or of the next frame if the object has none.
    pub first: u64,
    /// The number of frames.
    pub count: u32,
}

impl Frames {
    /// Return the number after the last frame.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }
}

/// The header of a journal object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Its kind.
    pub kind: Kind,
    /// The epoch of its writer; for a claim, the epoch that begins.
    pub epoch: u32,
    /// Its writer.
    pub writer: Writer,
    /// Its place in the journal; must match its name.
    pub place: u64,
    /// All places below were known to be its writer's own when this was created.
    pub answered: u64,
    /// Creation time in milliseconds since 1970. For humans and for restores to a time; decides nothing.
    pub ms: i64,
    /// The frames of the body.
    pub frames: Frames,
    /// Header checksum of the previous valid object; 0 for the first.
    pub before: u32,
}

/// A decoded journal object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'a> {
    /// Its header.
    pub header: Header,
    /// The checksum of the header. It identifies the whole object, as the header holds the checksum of the body.
    pub crc: u32,
    /// Its body.
    pub body: &'a [u8],
}

impl Header {
    /// Write the header before its body: `object` has [`HEADER`] bytes of room followed by the body. Return the
    /// header's checksum.
    pub fn write(&self, object: &mut [u8]) -> u32 {
        let (room, body) = object.split_at_mut(HEADER);
        let mut out = Out(MAGIC.to_vec());
        out.0.extend_from_slice(&[self.kind.number(), 0, 0, 0]);
        out.u32(self.epoch);
        out.0.extend_from_slice(&self.writer);
        out.u64(self.place);
        out.u64(self.answered);
        out.u64(self.ms.cast_unsigned());
        out.u64(self.frames.segment);
        out.u64(self.frames.at);
        out.u64(self.frames.first);
        out.u32(self.frames.count);
        out.u64(body.len() as u64);
        out.u32(crc32c::crc32c(body));
        out.u32(self.before);
        out.u64(0);
        let header = out.finish();
        room.copy_from_slice(&header);
        u32::from_le_bytes(header[HEADER - 4..].try_into().expect("four bytes"))
    }

    /// Return the object with a body.
    pub fn object(&self, body: &[u8]) -> (Vec<u8>, u32) {
        let mut object = vec![0; HEADER];
        object.extend_from_slice(body);
        let crc = self.write(&mut object);
        (object, crc)
    }
}

/// Decode a journal object.
pub fn read(bytes: &[u8]) -> Result<Object<'_>, &'static str> {
    let (head, body) = bytes
        .split_at_checked(HEADER)
        .ok_or("is shorter than its header")?;
    let fields = Fields::checked(head, MAGIC);
    let mut fields = fields.ok_or("has a header that does not match its checksum")?;
    let unread = "has a header that cannot be read";
    let (header, len, crc) = header(&mut fields).ok_or(unread)?;
    if len != body.len() as u64 {
        return Err("is not as long as its header says");
    }
    if crc != crc32c::crc32c(body) {
        return Err("does not match the checksum in its header");
    }
    Ok(Object {
        header,
        crc: u32::from_le_bytes(head[HEADER - 4..].try_into().expect("four bytes")),
        body,
    })
}

/// Decode the header of a journal object, without its body.
pub fn read_header(head: &[u8]) -> Result<Header, &'static str> {
    let mut fields =
        Fields::checked(head, MAGIC).ok_or("has a header that does not match its checksum")?;
    let (header, _, _) = header(&mut fields).ok_or("has a header that cannot be read")?;
    Ok(header)
}

fn header(fields: &mut Fields<'_>) -> Option<(Header, u64, u32)> {
    let [kind, 0, 0, 0] = fields.array::<4>()? else {
        return None;
    };
    let mut header = Header {
        kind: *Kind::ALL.get(usize::from(kind).checked_sub(1)?)?,
        epoch: fields.u32()?,
        writer: fields.array()?,
        place: fields.u64()?,
        answered: fields.u64()?,
        ms: fields.u64()?.cast_signed(),
        frames: Frames {
            segment: fields.u64()?,
            at: fields.u64()?,
            first: fields.u64()?,
            count: fields.u32()?,
        },
        before: 0,
    };
    let (len, crc) = (fields.u64()?, fields.u32()?);
    header.before = fields.u32()?;
    let zeros = fields.u64()? == 0;
    zeros.then_some((header, len, crc))
}

/// The body of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The first place that its writer writes.
    pub resume: u64,
    /// The most places its writer writes at once.
    pub window: u32,
    /// Its writer's node ID.
    pub node: i32,
    /// The place of the previous claim; 0 for the first.
    pub previous: u64,
    /// The segment of the next frame.
    pub segment: u64,
    /// The format of the store's files.
    pub format: u32,
    /// The journal does not continue the frames before the claim: state restarts with the checkpoint at `resume` of
    /// this epoch, and until that exists nothing after the claim can be restored.
    pub is_base: bool,
    /// Release and listeners of the writer, for humans.
    pub about: Vec<u8>,
}

/// Return the claim in a journal object; None if it is not a claim.
pub fn object_claim(bytes: &[u8]) -> Option<Claim> {
    let object = read(bytes).ok()?;
    (object.header.kind == Kind::Claim)
        .then(|| Claim::decode(object.body))
        .flatten()
}

impl Claim {
    /// Encode the claim as an object body.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.u64(self.resume);
        out.u32(self.window);
        out.u32(self.node.cast_unsigned());
        out.u64(self.previous);
        out.u64(self.segment);
        out.u32(self.format);
        out.u32(u32::from(self.is_base));
        out.sized(&self.about);
        out.0
    }

    /// Decode the body of a claim.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut fields = Fields(body);
        let claim = Self {
            resume: fields.u64()?,
            window: fields.u32()?,
            node: fields.u32()?.cast_signed(),
            previous: fields.u64()?,
            segment: fields.u64()?,
            format: fields.u32()?,
            is_base: match fields.u32()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            about: fields.sized()?.to_vec(),
        };
        fields.end(claim)
    }
}
