//! Opens a store on a forged journal.

use std::fs;
use std::path::Path;

use arbitrary::{Result, Unstructured};
use sharecore_store::{Durability, Options, Store, Want};

use crate::operations::list;

const FRAMES_MAX: usize = 12;

/// Writes frames of any operations, complete, truncated or changed: the store opens or names the damage, and a store that
/// opened opens again with the same content.
pub fn recovery(data: &[u8]) {
    // The journal ends when the bytes run out
    let _ = run(&mut Unstructured::new(data));
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut journal = segment_header(1, 1);
    for number in 1..=u.int_in_range(1..=FRAMES_MAX as u64)? {
        let count = u.int_in_range(0..=5_u32)?;
        let mut body = Vec::new();
        for _ in 0..count {
            operation(u, &mut body)?;
        }
        let number = if u.ratio(1, 30)? {
            u.arbitrary()?
        } else {
            number
        };
        journal.extend(frame(&body, count, number, u.arbitrary()?));
        if u.is_empty() {
            break;
        }
    }
    for _ in 0..u.int_in_range(0..=3)? {
        let at = u.choose_index(journal.len())?;
        journal[at] ^= u.arbitrary::<u8>()?;
    }
    if u.ratio(1, 4)? {
        journal.truncate(u.choose_index(journal.len())?);
    }
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join(format!("{:016x}.journal", 1)), &journal).expect("written");
    if let Some(content) = opened(dir.path()) {
        assert_eq!(
            opened(dir.path()).expect("a store that opened opens again"),
            content
        );
    }
    Ok(())
}

type Content = (Vec<(Vec<u8>, Vec<u8>)>, Vec<(u64, i64, i64)>);

/// The content of an open store; `None` if it reports damage.
fn opened(dir: &Path) -> Option<Content> {
    let options = Options {
        durability: Durability::Os,
        ..Options::default()
    };
    let store = Store::open(dir, &options).ok()?;
    let mut logs = Vec::new();
    for log in store.logs() {
        let offsets = store.offsets(log).expect("a log that is listed");
        let want = Want {
            max_bytes: 1 << 20,
            max_records: i64::MAX,
            limit: None,
            at_least_one: true,
        };
        if let Ok(slice) = store.read(log, offsets.start, want) {
            // The frame's checksum is correct, so its bytes are returned; their readers judge the meaning
            let mut bytes = vec![0; slice.size];
            slice.copy_to(&mut bytes).expect("bytes that were found");
        }
        let _ = store.dirt(log, i64::MAX);
        let _ = store.aborted(log, 0, i64::MAX);
        logs.push((log, offsets.start, offsets.high_watermark));
    }
    logs.sort_unstable();
    let entries = store.entries(b"");
    store.close();
    Some((entries, logs))
}

fn segment_header(id: u64, first_frame: u64) -> Vec<u8> {
    let mut header = b"SCseg-1\n".to_vec();
    header.extend(id.to_le_bytes());
    header.extend(first_frame.to_le_bytes());
    header.extend(crc32c::crc32c(&header).to_le_bytes());
    header.resize(32, 0);
    header
}

fn frame(body: &[u8], count: u32, number: u64, synced: bool) -> Vec<u8> {
    let mut checked = (body.len() as u32).to_le_bytes().to_vec();
    checked.extend(count.to_le_bytes());
    checked.extend(number.to_le_bytes());
    checked.extend([u8::from(synced), 0, 0, 0, 0, 0, 0, 0]);
    checked.extend(body);
    let mut frame = b"SCfr".to_vec();
    frame.extend(crc32c::crc32c(&checked).to_le_bytes());
    frame.extend(checked);
    frame
}

/// An operation as encoded in a frame, usually a valid one.
fn operation(u: &mut Unstructured<'_>, out: &mut Vec<u8>) -> Result<()> {
    let tag = u.int_in_range(1..=9_u8)?;
    out.push(tag);
    let log = u64::from(u.int_in_range(0..=3_u8)?);
    match tag {
        1 => {
            out.extend(log.to_le_bytes());
            out.extend(u.arbitrary::<i64>()?.to_le_bytes());
            sized(out, &batch(u)?);
        }
        2 => {
            let (key, value) = (bytes(u)?, bytes(u)?);
            out.extend((key.len() as u32).to_le_bytes());
            out.extend((value.len() as u32).to_le_bytes());
            out.extend(key);
            out.extend(value);
        }
        3 => sized(out, &bytes(u)?),
        4 | 5 => out.extend(log.to_le_bytes()),
        6 => {
            out.extend(log.to_le_bytes());
            out.extend(u.arbitrary::<i64>()?.to_le_bytes());
        }
        7 => {
            for _ in 0..2 {
                let ids = list(u, 3, |u| u.int_in_range(0..=5_u64))?;
                out.extend((ids.len() as u32).to_le_bytes());
                out.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
            }
        }
        8 => {
            out.extend(log.to_le_bytes());
            for _ in 0..2 {
                out.extend(i64::from(u.int_in_range(-1..=20_i8)?).to_le_bytes());
            }
            out.extend(u.int_in_range(0..=5_u64)?.to_le_bytes());
            let segments = list(u, 2, |u| u.int_in_range(0..=5_u64))?;
            let vanished = list(u, 6, |u| u.int_in_range(0..=20_u64))?;
            for numbers in [segments, vanished] {
                out.extend((numbers.len() as u32).to_le_bytes());
                out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            }
        }
        _ => out.extend(bytes(u)?),
    }
    Ok(())
}

fn bytes(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let length = u.int_in_range(0..=8_usize)?;
    Ok(u.bytes(length.min(u.len()))?.to_vec())
}

fn sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// A record batch whose header is valid now and then.
fn batch(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    if u.ratio(1, 8)? {
        return bytes(u);
    }
    let payload = bytes(u)?;
    let records = u.int_in_range(1..=4_i32)?;
    let mut out = i64::from(u.int_in_range(0..=20_u8)?).to_be_bytes().to_vec();
    out.extend((49 + payload.len() as i32).to_be_bytes());
    out.extend((-1_i32).to_be_bytes());
    out.push(2);
    out.extend([0; 4]);
    out.extend(u.int_in_range(0..=0x30_i16)?.to_be_bytes());
    out.extend((records - 1).to_be_bytes());
    out.extend(u.arbitrary::<i64>()?.to_be_bytes());
    out.extend(u.arbitrary::<i64>()?.to_be_bytes());
    out.extend(i64::from(u.int_in_range(-1..=2_i8)?).to_be_bytes());
    out.extend(u.int_in_range(-1..=2_i16)?.to_be_bytes());
    out.extend(u.int_in_range(-1..=5_i32)?.to_be_bytes());
    out.extend(records.to_be_bytes());
    out.extend(payload);
    let crc = crc32c::crc32c(&out[21..]);
    out[17..21].copy_from_slice(&crc.to_be_bytes());
    if u.ratio(1, 8)? {
        let at = u.choose_index(out.len())?;
        out[at] ^= u.arbitrary::<u8>()?;
    }
    Ok(out)
}
