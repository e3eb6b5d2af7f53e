//! `sharecore._core`: translates between Python and the other crates; contains no decisions of its own.

mod acknowledging;
mod answers;
mod batches;
mod bench;
mod bounds;
mod bucket;
mod budget;
mod checks;
mod cleaner;
mod client_transport;
mod clock;
mod codes;
mod collected;
mod columns;
mod completion;
mod compression;
mod convert;
mod copying;
mod cork;
mod dead_letter_batch;
mod dispatch;
mod drained;
mod error;
mod exchange;
mod expanded;
mod fetching;
mod finishing;
mod gather;
mod gathering;
mod heap;
mod home_nodes;
mod incoming_request;
mod intake;
mod interest;
mod large;
mod layout;
mod leader;
mod leaders;
mod lease;
mod log_offsets;
mod look;
mod names;
mod partition;
mod parts;
mod persisting;
mod pipeline;
mod produce;
mod produce_append;
mod produce_check;
mod produce_places;
mod produce_refused;
mod produce_work;
mod produced;
mod python;
mod reading;
mod reasons;
mod record;
mod records;
mod rest;
mod rules;
mod sending;
mod session;
mod settling;
mod share_answer;
mod share_fetch;
mod share_services;
mod share_state;
#[cfg(feature = "testing")]
mod simulated_bucket;
#[cfg(feature = "testing")]
mod simulation;
mod slices;
mod slot;
mod socket;
mod sockets;
mod spans;
mod staged_batch;
mod staging;
mod state;
mod state_fold;
mod state_slot;
mod state_write;
mod states;
mod stop;
mod store;
mod store_events;
mod survey;
mod tally;
mod testing;
mod tickets;
mod unsent;
mod uuids;
mod waiting;
mod waits;
mod wire;
mod write;
mod written;

use pyo3::prelude::*;

/// The compiled part of sharecore.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::acknowledging::PyShareAcknowledge;
    #[pymodule_export]
    use crate::answers::PyAnswerBudget;
    #[pymodule_export]
    use crate::batches::{encode_batch, encode_records};
    #[pymodule_export]
    use crate::bench::bench_trace;
    #[pymodule_export]
    use crate::bounds::PyGroupBounds;
    #[pymodule_export]
    use crate::bucket::{
        PyStandby, bucket_url, has_own_data, inspect_bucket, prepare_home, probe_bucket,
        reaches_clouds, remove_bucket, restore_bucket,
    };
    #[pymodule_export]
    use crate::budget::PyMemoryBudget;
    #[pymodule_export]
    use crate::checks::PyChecks;
    #[pymodule_export]
    use crate::cleaner::PyLogCleaner;
    #[pymodule_export]
    use crate::clock::{monotonic_ms, now_ms};
    #[pymodule_export]
    use crate::columns::{damaged_batches, decode_columns};
    #[pymodule_export]
    use crate::compression::{crc32c, decompress, java_hash};
    #[pymodule_export]
    use crate::copying::{PyBucketCopy, PyBucketStatus, is_proven};
    #[pymodule_export]
    use crate::dead_letter_batch::PyDeadLetterBatch;
    #[pymodule_export]
    use crate::dispatch::PyDispatch;
    #[pymodule_export]
    use crate::exchange::PyExchange;
    #[pymodule_export]
    use crate::expanded::PyExpandedCache;
    #[pymodule_export]
    use crate::fetching::PyShareFetching;
    #[pymodule_export]
    use crate::gather::PyPartitionFetch;
    #[pymodule_export]
    use crate::gathering::PyGather;
    #[pymodule_export]
    use crate::heap::{return_memory_soon, use_one_heap};
    #[pymodule_export]
    use crate::home_nodes::PyHomeNodes;
    #[pymodule_export]
    use crate::large::PyWritten;
    #[pymodule_export]
    use crate::layout::PyLayout;
    #[pymodule_export]
    use crate::leader::PyLeader;
    #[pymodule_export]
    use crate::leaders::{PyLeaders, PySessions, next_epoch};
    #[pymodule_export]
    use crate::log_offsets::{PyLogAccess, PyLogOffsets};
    #[pymodule_export]
    use crate::look::PyShareLook;
    #[pymodule_export]
    use crate::names::PyExpression;
    #[pymodule_export]
    use crate::partition::PyPartition;
    #[pymodule_export]
    use crate::produce::PyProduce;
    #[pymodule_export]
    use crate::produce_work::{PyProduceContents, PyProduceWork};
    #[pymodule_export]
    use crate::produced::PyProduced;
    #[pymodule_export]
    use crate::reasons::PyWaitingReasons;
    #[pymodule_export]
    use crate::record::PyRecord;
    #[pymodule_export]
    use crate::records::decode_records;
    #[pymodule_export]
    use crate::rules::PyRules;
    #[pymodule_export]
    use crate::session::PyShareSession;
    #[pymodule_export]
    use crate::share_answer::PyShareAnswer;
    #[pymodule_export]
    use crate::share_fetch::PyShareFetch;
    #[pymodule_export]
    use crate::share_state::{PyShareStateFold, decode_share_state, whole_batches};
    #[cfg(feature = "testing")]
    #[pymodule_export]
    use crate::simulated_bucket::{
        PyBucketAnswer, PyBucketCall, PyMemoryBucket, PySimulatedCache, plant_mistake,
    };
    #[cfg(feature = "testing")]
    #[pymodule_export]
    use crate::simulation::PyMemoryDisk;
    #[pymodule_export]
    use crate::slices::PyReading;
    #[pymodule_export]
    use crate::slot::PyPending;
    #[pymodule_export]
    use crate::socket::PySocket;
    #[pymodule_export]
    use crate::sockets::PySockets;
    #[pymodule_export]
    use crate::spans::PySpans;
    #[pymodule_export]
    use crate::staged_batch::PyStagedBatch;
    #[pymodule_export]
    use crate::staging::PyStaging;
    #[pymodule_export]
    use crate::state::{combine, combine_state_batches};
    #[pymodule_export]
    use crate::state_fold::{PyStateContent, PyStateFold};
    #[pymodule_export]
    use crate::state_write::PyWrite;
    #[pymodule_export]
    use crate::states::PyStates;
    #[pymodule_export]
    use crate::store::PyStore;
    #[pymodule_export]
    use crate::store_events::PyStoreEvents;
    #[pymodule_export]
    use crate::survey::survey_store;
    #[pymodule_export]
    use crate::tally::observe_partitions;
    #[cfg(feature = "testing")]
    #[pymodule_export]
    use crate::testing::{call_by_name, plant_bug};
    #[pymodule_export]
    use crate::tickets::{PyStoredLog, PyTickets};
    #[pymodule_export]
    use crate::waiting::{PyLater, PyTicket, settle};
    #[pymodule_export]
    use crate::waits::{PyTimeouts, PyWaitingShareFetch};
    #[pymodule_export]
    use crate::wire::{read_request_header, skip_tagged_fields};
}
