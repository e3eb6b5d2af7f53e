//! Markers, which end transactions in a log.

/// Whether the marker with this key commits its transaction; `None` for keys of other control records.
pub(crate) fn marker_commits(key: &[u8]) -> Option<bool> {
    match key {
        [_, _, 0, 0] => Some(false),
        [_, _, 0, 1] => Some(true),
        _ => None,
    }
}

/// The coordinator epoch and decision of a marker.
pub(crate) fn read_marker(batch: &[u8]) -> Option<(i32, bool)> {
    // length, attributes, timestamp delta, offset delta, key length: one byte each; key: version (2), type (2)
    let record = batch.get(crate::batch::HEADER..)?;
    let commit = marker_commits(record.get(5..9)?)?;
    // value length (1), version (2), coordinator epoch (4)
    let epoch = i32::from_be_bytes(record.get(12..16)?.try_into().ok()?);
    Some((epoch, commit))
}
