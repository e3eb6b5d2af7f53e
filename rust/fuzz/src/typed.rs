//! Compares typed messages with the schema-driven reader and writer.

use crate::agree::KNOWN;

/// The first two bytes choose a message and a version; the rest is the message.
pub fn typed(data: &[u8]) {
    let [message, version, bytes @ ..] = data else {
        return;
    };
    let known = &KNOWN[usize::from(*message) % KNOWN.len()];
    let count = known.versions.end() - known.versions.start() + 1;
    (known.agree)(known.versions.start() + i16::from(*version) % count, bytes);
}
