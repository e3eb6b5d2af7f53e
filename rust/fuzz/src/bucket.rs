//! Decodes bucket objects from untrusted bytes.

use sharecore_bucket::{Checkpoint, Claim, Manifest, Walk, names, read, read_home};

/// Decodes any bytes as each kind of object, and encodes the result to the same bytes.
pub fn bucket(data: &[u8]) {
    if let Ok(object) = read(data) {
        let (bytes, crc) = object.header.object(object.body);
        assert_eq!((&bytes[..], crc), (data, object.crc));
    }
    // A header with a correct checksum, so that the body is decoded
    if let Some(body) = data.get(sharecore_bucket::HEADER - 4..) {
        let mut sealed = data[..sharecore_bucket::HEADER - 4].to_vec();
        sealed[..8].copy_from_slice(b"SCobj-1\n");
        sealed.extend_from_slice(&crc32c::crc32c(&sealed).to_le_bytes());
        sealed.extend_from_slice(body);
        let _ = read(&sealed);
        let _ = Walk::default().take(&sealed);
    }
    for magic in [b"SCbck-1\n", b"SCman-1\n"] {
        let mut sealed = [&magic[..], data].concat();
        sealed.extend_from_slice(&crc32c::crc32c(&sealed).to_le_bytes());
        if let Some(checkpoint) = Checkpoint::decode(&sealed) {
            assert_eq!(checkpoint.encode(), sealed);
        }
        if let Some(manifest) = Manifest::decode(&sealed) {
            assert_eq!(manifest.encode(), sealed);
        }
    }
    if let Some(claim) = Claim::decode(data) {
        assert_eq!(claim.encode(), data);
    }
    let _ = read_home(data);
    if let Ok(name) = std::str::from_utf8(data) {
        let _ = names::parse_segment(name);
        let _ = names::parse_checkpoint(name);
    }
}
