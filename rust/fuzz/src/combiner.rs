//! Compares the state-batch combiner with a model that knows each offset.

use arbitrary::{Result, Unstructured};
use sharecore_engine::{Combiner, RecordState, StateBatch};

use crate::combined::model;

/// Combines any state batches, overlapping and in any order.
pub fn combiner(data: &[u8]) {
    // The lists end when the bytes run out
    let _ = run(&mut Unstructured::new(data));
}

fn batches(u: &mut Unstructured<'_>) -> Result<Vec<StateBatch>> {
    let states = [
        RecordState::Available,
        RecordState::Acknowledged,
        RecordState::Archived,
    ];
    (0..u.int_in_range(0..=24_usize)?)
        .map(|_| {
            let first = u.int_in_range(0..=100)?;
            Ok(StateBatch {
                first,
                last: first + u.int_in_range(0..=30)?,
                state: *u.choose(&states)?,
                delivery_count: u.int_in_range(0..=4)?,
            })
        })
        .collect()
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let start_offset = u.arbitrary::<u8>()?;
    let start_offset = (start_offset < 128).then_some(i64::from(start_offset));
    let (existing, new) = (batches(u)?, batches(u)?);
    let mut room = Combiner::default();
    let combined = room.combine(&existing, &new, start_offset).to_vec();
    assert_eq!(combined, model(&existing, &new, start_offset));
    let again = room.combine(&combined, &[], start_offset);
    assert_eq!(again, combined, "what is combined stays as it is");
    Ok(())
}
