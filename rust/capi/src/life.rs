//! Creating, configuring and freeing partitions.

use sharecore_engine::{Config, Partition};

use crate::guard::{guarded, with};
use crate::handle::{self, SharecorePartition};
use crate::memory::{Place, array, one};
use crate::status::SharecoreStatus;
use crate::types::{SharecoreConfig, SharecoreStateBatch, state_batches};

/// Fills in Kafka's default limits.
///
/// # Safety
/// `config` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_config_default(config: *mut SharecoreConfig) -> SharecoreStatus {
    guarded(|| {
        // SAFETY: promised by the caller
        unsafe { Place::new(config, "config") }?.put(Config::default().into());
        Ok(())
    })
}

/// Creates a partition that begins at `start_offset`, with nothing in flight.
///
/// # Safety
/// `config` must be null or readable, `partition` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_create(
    config: *const SharecoreConfig,
    start_offset: i64,
    partition: *mut SharecorePartition,
) -> SharecoreStatus {
    // SAFETY: promised by the caller; no state batches
    unsafe { sharecore_load(config, start_offset, std::ptr::null(), 0, partition) }
}

/// Loads a persisted partition: nothing is acquired, and offsets that no state batch covers are fetched again.
///
/// INVALID_REQUEST: state batches that overlap, lie before the start offset, or are acquired.
///
/// # Safety
/// `config` must be null or readable, `partition` null or writable, and `batches` point to `batch_count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_load(
    config: *const SharecoreConfig,
    start_offset: i64,
    batches: *const SharecoreStateBatch,
    batch_count: usize,
    partition: *mut SharecorePartition,
) -> SharecoreStatus {
    guarded(|| {
        // SAFETY: promised by the caller
        let (place, config, batches) = unsafe {
            (
                Place::new(partition, "partition")?,
                one(config, "config")?,
                array(batches, batch_count, "batches")?,
            )
        };
        place.put(0);
        let state = state_batches(batches)?;
        let made = Partition::new(config.checked()?, start_offset, &state)?;
        place.put(handle::insert(made)?);
        Ok(())
    })
}

/// Changes the limits; acquired records keep their deadline.
///
/// # Safety
/// `config` must be null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharecore_configure(
    partition: SharecorePartition,
    config: *const SharecoreConfig,
) -> SharecoreStatus {
    with(partition, |partition| {
        // SAFETY: promised by the caller
        let config = unsafe { one(config, "config") }?.checked()?;
        partition.configure(config);
        Ok(())
    })
}

/// Frees a partition, after calls in progress in other threads. Later calls return BAD_PARTITION.
#[unsafe(no_mangle)]
pub extern "C" fn sharecore_free(partition: SharecorePartition) -> SharecoreStatus {
    guarded(|| handle::remove(partition))
}
