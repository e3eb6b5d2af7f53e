//! `sharecore._core`: translates between Python and the crates below, decides nothing.

mod batches;
mod bench;
mod cleaner;
mod columns;
mod combine;
mod convert;
mod error;
mod layout;
mod letters;
mod names;
mod partition;
mod parts;
mod records;
mod share_state;
mod simulation;
mod slices;
mod state;
mod state_fold;
mod stop;
mod store;
mod survey;
mod tally;
mod uuids;
mod wire;
mod write;

use pyo3::prelude::*;

/// The compiled part of sharecore.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::batches::{encode_batch, encode_records};
    #[pymodule_export]
    use crate::bench::bench_trace;
    #[pymodule_export]
    use crate::cleaner::{PyLogCleaner, records_without_key};
    #[pymodule_export]
    use crate::columns::{damaged_batches, decode_columns};
    #[pymodule_export]
    use crate::combine::combine;
    #[pymodule_export]
    use crate::layout::PyLayout;
    #[pymodule_export]
    use crate::letters::PyLetterBatch;
    #[pymodule_export]
    use crate::names::matching;
    #[pymodule_export]
    use crate::partition::{PyPartition, PyWrite};
    #[pymodule_export]
    use crate::records::{PyRecord, decode_records};
    #[pymodule_export]
    use crate::share_state::{PyShareStateFold, decode_share_state, whole_batches};
    #[pymodule_export]
    use crate::simulation::PyMemoryDisk;
    #[pymodule_export]
    use crate::state::{combine_state_batches, pack_write};
    #[pymodule_export]
    use crate::state_fold::{PyStateContent, PyStateFold};
    #[pymodule_export]
    use crate::store::PyStore;
    #[pymodule_export]
    use crate::survey::survey_store;
    #[pymodule_export]
    use crate::tally::observe_partitions;
    #[pymodule_export]
    use crate::wire::{PyFramer, PyRequestReader, read_request_header, skip_tagged_fields};
}
