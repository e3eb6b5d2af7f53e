//! Decodes share state from untrusted records.

use arbitrary::{Result, Unstructured};
use sharecore_state::{Columns, Live, Options, history};

/// A record that is mostly valid, so that more than its first bytes are decoded.
struct Given {
    update: bool,
    group: u8,
    fields: [u8; 4],
    start_offset: i16,
    batches: Vec<(i16, u8, u8, u8)>,
    count: Option<i32>,
    tombstone: bool,
    /// Changes to bytes of the key or the value.
    changes: Vec<(bool, u16, u8)>,
    cut: Option<u8>,
}

impl Given {
    fn read(u: &mut Unstructured<'_>) -> Result<Self> {
        Ok(Self {
            update: u.arbitrary()?,
            group: u.arbitrary()?,
            fields: u.arbitrary()?,
            start_offset: u.arbitrary()?,
            batches: u.arbitrary()?,
            count: u.arbitrary()?,
            tombstone: u.ratio(1, 8)?,
            changes: u.arbitrary()?,
            cut: u.arbitrary()?,
        })
    }

    fn key(&self) -> Vec<u8> {
        let mut key = vec![0, u8::from(self.update), 0, 1, b'a' + self.group % 4];
        key.extend([self.group % 4; 16]);
        key.extend([0, 0, 0, 7]);
        key
    }

    fn value(&self) -> Vec<u8> {
        let mut value = vec![0, 0];
        let ints = if self.update { 2 } else { 3 };
        for number in &self.fields[..ints] {
            value.extend(i32::from(*number).to_be_bytes());
        }
        value.extend(i64::from(self.start_offset).to_be_bytes());
        if !self.update {
            value.extend([0; 16]);
        }
        let batches = &self.batches[..self.batches.len().min(126)];
        value.push(batches.len() as u8 + 1);
        for (first, length, state, count) in batches {
            let first = i64::from(*first);
            value.extend(first.to_be_bytes());
            value.extend((first + i64::from(*length)).to_be_bytes());
            value.extend([state % 5, 0, *count, 0]);
        }
        match self.count {
            None => value.push(0),
            Some(count) => {
                value.extend([1, 0, 4]);
                value.extend(count.to_be_bytes());
            }
        }
        value
    }

    fn changed(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let (mut key, mut value) = (self.key(), self.value());
        for (in_key, at, to) in self.changes.iter().take(4) {
            let bytes = if *in_key { &mut key } else { &mut value };
            let at = usize::from(*at) % bytes.len();
            bytes[at] = *to;
        }
        value.truncate(value.len() - self.cut.map_or(0, usize::from).min(value.len()));
        (key, (!self.tombstone).then_some(value))
    }
}

/// Decodes any records in a batch: each becomes one row, the fold ends with at most one row per share partition, and nothing
/// panics. Then decodes the bytes as they are.
pub fn share_state(data: &[u8]) {
    let options = Options {
        first: i64::MIN,
        end: i64::MAX,
        expanded_max: 1 << 20,
        group: None,
    };
    // The records end when the bytes run out
    if let Ok(records) = records(&mut Unstructured::new(data)) {
        let batch = batch(&records);
        let read = history(&batch, &options, usize::MAX, true);
        assert_eq!(
            (read.columns.rows, read.taken),
            (records.len(), batch.len())
        );
        check(&read.columns);
        let readable = history(&batch, &options, usize::MAX, false);
        assert_eq!(readable.unreadable, read.unreadable);
        assert_eq!(
            records.len() - readable.columns.rows,
            read.columns.errors.validity.valid()
        );
        fold(&batch, &options, records.len());
    }
    check(&history(data, &options, usize::MAX, true).columns);
    fold(data, &options, usize::MAX);
}

fn records(u: &mut Unstructured<'_>) -> Result<Vec<Given>> {
    let mut records = Vec::new();
    while !u.is_empty() && records.len() < 200 {
        records.push(Given::read(u)?);
    }
    Ok(records)
}

fn fold(data: &[u8], options: &Options, records: usize) {
    let mut live = Live::new(options.clone(), Some(8));
    live.take(data);
    let (mut rows, mut rounds) = (0, 0);
    loop {
        let columns = live.drain(3);
        if columns.rows == 0 {
            break;
        }
        check(&columns);
        rows += columns.rows;
        rounds += 1;
    }
    assert!(rows <= records && rounds <= rows);
}

/// Each column has one entry per row, and the offsets of texts and lists end where their content does.
fn check(columns: &Columns) {
    let rows = columns.rows;
    for (column, size) in [
        (&columns.offsets, 8),
        (&columns.timestamps, 8),
        (&columns.partitions, 4),
        (&columns.snapshot_epochs, 4),
        (&columns.state_epochs, 4),
        (&columns.leader_epochs, 4),
        (&columns.start_offsets, 8),
        (&columns.delivery_complete_counts, 4),
        (&columns.created, 8),
        (&columns.written, 8),
    ] {
        assert_eq!(column.len(), rows * size);
    }
    let last = |offsets: &[u8]| {
        assert_eq!(offsets.len(), (rows + 1) * 4);
        let last = offsets.last_chunk().expect("one more than there are rows");
        usize::try_from(i32::from_ne_bytes(*last)).expect("offsets ascend from 0")
    };
    for text in [
        &columns.types,
        &columns.groups,
        &columns.topic_ids,
        &columns.errors,
    ] {
        assert_eq!(last(&text.offsets), text.data.len());
        assert!(std::str::from_utf8(&text.data).is_ok());
    }
    let batches = last(&columns.batches);
    assert_eq!(batches, columns.states.len());
    assert_eq!(columns.firsts.len(), batches * 8);
    assert_eq!(columns.lasts.len(), batches * 8);
    assert_eq!(columns.delivery_counts.len(), batches * 2);
}

fn batch(records: &[Given]) -> Vec<u8> {
    let mut batch = vec![0; 61];
    for (delta, given) in records.iter().enumerate() {
        let (key, value) = given.changed();
        let mut record = vec![0, 0];
        varint(delta as i64, &mut record);
        varint(key.len() as i64, &mut record);
        record.extend(key);
        match value {
            None => varint(-1, &mut record),
            Some(value) => {
                varint(value.len() as i64, &mut record);
                record.extend(value);
            }
        }
        record.push(0);
        varint(record.len() as i64, &mut batch);
        batch.extend(record);
    }
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[16] = 2;
    batch[23..27].copy_from_slice(&(records.len() as i32).to_be_bytes());
    batch[57..61].copy_from_slice(&(records.len() as i32).to_be_bytes());
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

fn varint(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
