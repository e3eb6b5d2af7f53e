//! Decodes record batches from untrusted bytes.

use std::io::Write;

use arbitrary::{Result, Unstructured};
use sharecore_records::{Batches, Compression, decompress};

/// Maximum decompressed size of a batch.
const EXPANDED_MAX: usize = 1 << 20;
const CHECKED_FROM: usize = 21;
const CRC: std::ops::Range<usize> = 17..21;

/// Decodes any bytes, as they are and with corrected checksums, without which nothing after the checksum is reached. Then uses
/// the same bytes as the content of a batch that is compressed, slightly changed, and decompressed.
pub fn records(data: &[u8]) {
    read(data);
    read(&sealed(data.to_vec()));
    // The batch ends when the bytes run out
    if let Ok(batch) = compressed(&mut Unstructured::new(data)) {
        read(&sealed(batch));
    }
}

fn sealed(mut data: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some(batch) = Batches::new(&data[at..]).next() {
        let size = batch.bytes().len();
        let crc = crc32c::crc32c(&data[at + CHECKED_FROM..at + size]);
        data[at..][CRC].copy_from_slice(&crc.to_be_bytes());
        at += size;
    }
    data
}

/// A batch of compressed bytes, some of which may be changed.
fn compressed(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let codec: u8 = u.int_in_range(0..=4)?;
    let changes: Vec<(u16, u8)> = u.arbitrary()?;
    let count: u8 = u.arbitrary()?;
    let plain = u.bytes(u.len())?;
    let (compression, mut payload) = match codec {
        1 => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(plain).expect("memory");
            (Compression::Gzip, out.finish().expect("memory"))
        }
        2 => {
            let block = snap::raw::Encoder::new().compress_vec(plain);
            (Compression::Snappy, block.expect("short enough"))
        }
        3 => {
            let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
            out.write_all(plain).expect("memory");
            (Compression::Lz4, out.finish().expect("memory"))
        }
        4 => (
            Compression::Zstd,
            zstd::stream::encode_all(plain, 1).expect("memory"),
        ),
        _ => (Compression::None, plain.to_vec()),
    };
    assert_eq!(
        decompress(compression, &payload, plain.len()).expect("what was compressed"),
        plain
    );
    for (at, flip) in changes.into_iter().take(8) {
        if let Some(byte) = payload.get_mut(usize::from(at)) {
            *byte ^= flip;
        }
    }
    let mut batch = vec![0; 61];
    batch[8..12].copy_from_slice(&(49 + payload.len() as i32).to_be_bytes());
    batch[16] = 2;
    batch[22] = codec;
    batch[60] = count;
    batch.extend(payload);
    Ok(batch)
}

fn read(data: &[u8]) {
    let mut batches = Batches::new(data);
    let mut seen = 0;
    for batch in &mut batches {
        seen += batch.bytes().len();
        let _ = (batch.header.last_offset(), batch.header.timestamp_type());
        let Ok(expanded) = batch.expand(EXPANDED_MAX) else {
            continue;
        };
        assert!(expanded.len() <= EXPANDED_MAX.max(batch.bytes().len()));
        let mut count = 0_i64;
        for record in batch.records(&expanded) {
            count += 1;
            let Ok(record) = record else { break };
            let within = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len) <= expanded.len();
            assert!(within(record.key) && within(record.value));
            let mut headers = 0;
            for header in record.headers {
                headers += 1;
                assert!(headers <= expanded.len() + 1, "headers out of nothing");
                let Ok((_, value)) = header else { break };
                assert!(within(value));
            }
        }
        assert!(count <= i64::from(batch.header.count.max(0)));
    }
    assert_eq!(seen + batches.rest().len(), data.len());
}
