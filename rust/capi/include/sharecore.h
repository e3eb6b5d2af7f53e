#ifndef SHARECORE_H
#define SHARECORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libsharecore: the in-flight state of Kafka share partitions (KIP-932). docs/c-abi.md shows how to use it.
   Made from rust/capi by `make capi-header`; do not edit. */

// The result of a call. Positive codes are Kafka's error codes; negative ones mean a bug in the caller or the library.
// After anything but OK and TOO_SMALL the partition is unchanged, except that renewals before a refused
// acknowledgement are kept.
enum SharecoreStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  SHARECORE_STATUS_OK = 0,
  // Refused: the request is invalid (Kafka's INVALID_REQUEST).
  SHARECORE_STATUS_INVALID_REQUEST = 42,
  // Refused: the records' state does not allow it (Kafka's INVALID_RECORD_STATE).
  SHARECORE_STATUS_INVALID_RECORD_STATE = 121,
  // A required pointer is null, or misaligned.
  SHARECORE_STATUS_BAD_POINTER = -1,
  // The partition was freed or never created.
  SHARECORE_STATUS_BAD_PARTITION = -2,
  // An invalid argument: a name that is not UTF-8, a limit of zero, ranges out of order.
  SHARECORE_STATUS_BAD_ARGUMENT = -3,
  // Success, but the array is too small: it has the first elements, the count is the total.
  SHARECORE_STATUS_TOO_SMALL = -4,
  // The engine failed in this call or an earlier one; the partition can only be freed.
  SHARECORE_STATUS_POISONED = -5,
  // An invariant of the engine is broken.
  SHARECORE_STATUS_BROKEN = -6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum SharecoreStatus SharecoreStatus;
#else
typedef int32_t SharecoreStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The limits of a share partition.
typedef struct {
  // Deliveries before a record is archived; positive.
  uint16_t max_delivery_count;
  // Whether members may renew their locks.
  bool renew_enabled;
  // Whether rejected and undeliverable records wait for a dead-letter record before they are archived (KIP-1191).
  bool dead_letters;
  // How many offsets may be in flight; positive.
  int64_t max_inflight;
  // How long an acquisition lock lasts, in milliseconds; positive.
  int64_t lock_ms;
} SharecoreConfig;

// A partition: a number, not an address; 0 is null. Thread-safe: calls on one partition are serialized.
typedef uint64_t SharecorePartition;

// Offsets with the same state and delivery count.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
  // 0 available, 1 acquired, 2 acknowledged, 3 archiving, 4 archived.
  uint8_t state;
  // How often the records were delivered.
  uint16_t delivery_count;
} SharecoreStateBatch;

// The offsets of a record batch, first to last, both included.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
} SharecoreRange;

// Limits of a fetch.
typedef struct {
  // The offset of the read.
  int64_t fetch_offset;
  // How many records the member wants; whole record batches are returned, so it may get more unless `record_limit`.
  int64_t max_fetch_records;
  // Newly acquired records start another batch after this many offsets, at the next record-batch boundary.
  int64_t batch_size;
  // Whether `max_fetch_records` is strict.
  bool record_limit;
} SharecoreFetch;

// Offsets acquired by a member.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
  // How often they have been delivered, including this time.
  uint16_t delivery_count;
} SharecoreAcquired;

// A member's acknowledgement of the records first to last.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
  // 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
  const uint8_t *types;
  // 1, or the number of offsets.
  size_t type_count;
} SharecoreAcknowledgement;

// A state change that has begun and waits for the persister, until it is committed or rolled back.
typedef struct {
  // The ID of the write; 0 if there is nothing to persist.
  uint64_t id;
  // The start offset before the operation.
  int64_t start_offset;
  // Acknowledged and archived records at or after the start offset (KIP-1226).
  int64_t delivery_complete_count;
  // The number of state batches in `sharecore_write_batches`.
  size_t batch_count;
} SharecoreWrite;

// Neighboring records that each wait for a dead-letter record.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
  // How often the records were delivered.
  uint16_t delivery_count;
  // Whether a member rejected them, rather than the delivery limit. Guessed from the delivery count in loaded state.
  bool rejected;
  // Whether their time to live ended. Lost in loaded state.
  bool expired;
} SharecoreDeadLetter;

// The state of a partition.
typedef struct {
  // The lowest unfinished offset (SPSO).
  int64_t start_offset;
  // The highest offset in flight; if nothing is in flight, the next one to fetch.
  int64_t end_offset;
  // The offset to fetch from next.
  int64_t next_fetch_offset;
  // Acknowledged and archived records at or after the start offset (KIP-1226).
  int64_t delivery_complete_count;
  // When the next acquisition lock expires; INT64_MAX if none is held.
  int64_t next_deadline_ms;
  // The number of in-flight runs.
  size_t runs;
  // Bytes held, indexes included.
  size_t memory_bytes;
  // Whether the in-flight limit allows an acquire.
  bool can_acquire;
} SharecoreState;

// Rules for order, delivery times and retries.
typedef struct {
  // 0 none; 1 by key, from the entries of `sharecore_admit`; 2 all records of the partition, one after the other.
  uint8_t ordering;
  // Whether released records back off.
  bool on_release;
  // Whether records whose lock expired back off.
  bool on_timeout;
  // Whether expired records wait for a dead-letter record.
  bool expired_letters;
  // How many consecutive records of an order one member may acquire together; positive.
  int64_t run_max;
  // The back-off before the second delivery, in milliseconds; 0 for none.
  int64_t backoff_ms;
  // The longest back-off.
  int64_t backoff_max_ms;
  // Growth of each back-off over the previous one; 1 or more.
  double multiplier;
  // A back-off grows by up to this fraction; 0 to 1.
  double jitter;
  // How many records of the window may be neither acquired nor finished; positive.
  int64_t max_waiting;
  // 0: records have no entries. Else any number; a new one restarts the admission of the window.
  uint64_t looks_for;
} SharecoreRules;

// The next read of the log.
typedef struct {
  // The offset to read from; -1 if nothing can be acquired now.
  int64_t offset;
  // The most records, if they must be admitted.
  int64_t max_records;
  // Whether to pass them to `sharecore_admit` before acquiring.
  bool admits;
} SharecoreWanted;

// Delivery times and key of a record. Applies to the offsets up to the next entry too.
typedef struct {
  // The record's offset.
  int64_t offset;
  // Earliest delivery, in milliseconds since the epoch; INT64_MIN for none.
  int64_t not_before_ms;
  // Expiry, in milliseconds since the epoch; INT64_MAX for never.
  int64_t expires_ms;
  // A hash of its key that strangers cannot predict; 0 without a key, and so without an order.
  uint64_t digest;
} SharecoreEntry;

// Why records of a share partition are not delivered.
typedef struct {
  // Records waiting for their back-off.
  int64_t backoff;
  // Records waiting for their delivery time.
  int64_t delivery;
  // Records waiting for earlier ones of their key.
  int64_t behind;
  // Acquired records.
  int64_t leased;
  // Whether the window is full.
  bool is_full;
  // When `sharecore_advance_at` is due next by the monotonic clock; INT64_MAX for never.
  int64_t next_time_ms;
  // When it is due next, in milliseconds since the epoch.
  int64_t next_wall_ms;
} SharecoreWaiting;

// Why records of a share partition are not delivered, in detail.
typedef struct {
  // Records waiting for their back-off.
  int64_t backoff;
  // When the first back-off ends; INT64_MAX for never.
  int64_t backoff_due_ms;
  // Records waiting for their delivery time.
  int64_t delivery;
  // The first delivery time, in milliseconds since the epoch; INT64_MAX for none.
  int64_t delivery_due_ms;
  // Records to be admitted again, since the partition was loaded or its rules changed.
  int64_t unread;
  // Records waiting for earlier ones of their key.
  int64_t behind;
  // Keys with unfinished records.
  int64_t keys;
  // Acquired records.
  int64_t leased;
  // Acquired records whose lock `sharecore_keep_locks` extended.
  int64_t kept;
  // What counts against `max_waiting`: records that are neither acquired nor finished; ordered by key, runs of
  // neighbors with one key.
  int64_t units;
  // Whether the window is full.
  bool is_full;
  // Whether the partition is delivered in order, and its next records wait for acquired ones.
  bool is_in_line;
  // The order, as in `SharecoreRules`.
  uint8_t ordering;
} SharecoreWaitingDetails;

// A key with unfinished records.
typedef struct {
  // Its hash, from the entries of `sharecore_admit`.
  uint64_t digest;
  // How many of its records are admitted and not finished.
  int64_t records;
  // The offset of the first one.
  int64_t first;
} SharecoreKey;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The message of this thread's last failed call, truncated to fit and zero-terminated.
//
// Returns the size of the whole message with its zero; 1 if no call has failed. `out` may be null for `capacity` 0.
//
// # Safety
// `out` must point to `capacity` writable bytes.
size_t sharecore_last_error(char *out,
                            size_t capacity);

// Fills in Kafka's default limits.
//
// # Safety
// `config` must be null or writable.
SharecoreStatus sharecore_config_default(SharecoreConfig *config);

// Creates a partition that begins at `start_offset`, with nothing in flight.
//
// # Safety
// `config` must be null or readable, `partition` null or writable.
SharecoreStatus sharecore_create(const SharecoreConfig *config,
                                 int64_t start_offset,
                                 SharecorePartition *partition);

// Loads a persisted partition: nothing is acquired, and offsets that no state batch covers are fetched again.
//
// INVALID_REQUEST: state batches that overlap, lie before the start offset, or are acquired.
//
// # Safety
// `config` must be null or readable, `partition` null or writable, and `batches` point to `batch_count` elements.
SharecoreStatus sharecore_load(const SharecoreConfig *config,
                               int64_t start_offset,
                               const SharecoreStateBatch *batches,
                               size_t batch_count,
                               SharecorePartition *partition);

// Changes the limits; acquired records keep their deadline.
//
// # Safety
// `config` must be null or readable.
SharecoreStatus sharecore_configure(SharecorePartition partition, const SharecoreConfig *config);

// Frees a partition, after calls in progress in other threads. Later calls return BAD_PARTITION.
SharecoreStatus sharecore_free(SharecorePartition partition);

// Acquires for a member the available records of batches read from the log (ascending, without overlaps).
//
// TOO_SMALL: the records are acquired; `sharecore_acquired` returns them in a larger array.
//
// # Safety
// Each pointer must be null or point to as many elements as its count or capacity says.
SharecoreStatus sharecore_acquire(SharecorePartition partition,
                                  int64_t now_ms,
                                  const char *member,
                                  size_t member_length,
                                  const SharecoreRange *batches,
                                  size_t batch_count,
                                  const SharecoreFetch *fetch,
                                  SharecoreAcquired *out,
                                  size_t capacity,
                                  size_t *count);

// Returns the records of this thread's last `sharecore_acquire` again.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_acquired(SharecoreAcquired *out, size_t capacity, size_t *count);

// Accepts, releases, rejects or renews records that a member holds: the whole request or, if it is refused, only the
// renewals before the refused batch. Offsets before the start offset are skipped.
//
// # Safety
// Each pointer, those within `batches` included, must be null or point to as many elements as its count says; `write`
// must be null or writable.
SharecoreStatus sharecore_acknowledge(SharecorePartition partition,
                                      int64_t now_ms,
                                      const char *member,
                                      size_t member_length,
                                      const SharecoreAcknowledgement *batches,
                                      size_t batch_count,
                                      SharecoreWrite *write);

// Releases all records that a member holds: its session has closed.
//
// # Safety
// `member` must point to `member_length` bytes; `write` must be null or writable.
SharecoreStatus sharecore_release(SharecorePartition partition,
                                  const char *member,
                                  size_t member_length,
                                  SharecoreWrite *write);

// The state batches of an open write, in offset order, equal neighbors merged.
//
// INVALID_REQUEST: the write has ended, or never existed. TOO_SMALL: call again with a larger array.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_write_batches(SharecorePartition partition,
                                        uint64_t write_id,
                                        SharecoreStateBatch *out,
                                        size_t capacity,
                                        size_t *count);

// The write is durable: its records may change again, and the start offset moves past finished ones.
//
// INVALID_REQUEST: the write has ended, or never existed. BAD_ARGUMENT: the partition has rules.
SharecoreStatus sharecore_commit(SharecorePartition partition,
                                 uint64_t write_id);

// The write failed: its records are as before, except that locks may have expired.
//
// INVALID_REQUEST: the write has ended, or never existed.
SharecoreStatus sharecore_rollback(SharecorePartition partition, uint64_t write_id, int64_t now_ms);

// Frees the records whose acquisition lock has expired. BAD_ARGUMENT: the partition has rules.
//
// # Safety
// `write` must be null or writable.
SharecoreStatus sharecore_advance(SharecorePartition partition,
                                  int64_t now_ms,
                                  SharecoreWrite *write);

// Retention or DeleteRecords moved the log's start. Nothing to persist now: the next write carries the start offset.
SharecoreStatus sharecore_move_log_start(SharecorePartition partition,
                                         int64_t offset);

// Archives offsets without a record for this group: aborted transactions, control records.
SharecoreStatus sharecore_archive(SharecorePartition partition, int64_t first, int64_t last);

// The log has no records from `first` to `last`, as a fetch from `first` has shown. Nothing to persist.
SharecoreStatus sharecore_pass_hole(SharecorePartition partition,
                                    int64_t first,
                                    int64_t last);

// Merges new state batches with persisted ones, and drops those before `start_offset` (-1: none).
//
// The result is ascending without overlaps, and at most twice as long as the inputs together.
//
// # Safety
// `existing`, `new` and `out` must point to as many elements as their counts and capacity say; `out` must not overlap
// the other two; `count` must be null or writable.
SharecoreStatus sharecore_combine(const SharecoreStateBatch *existing,
                                  size_t existing_count,
                                  const SharecoreStateBatch *new_batches,
                                  size_t new_count,
                                  int64_t start_offset,
                                  SharecoreStateBatch *out,
                                  size_t capacity,
                                  size_t *count);

// The dead letters that became due since the last call, oldest first.
//
// TOO_SMALL: none is taken; call again with a larger array.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_take_dead_letters(SharecorePartition partition,
                                            SharecoreDeadLetter *out,
                                            size_t capacity,
                                            size_t *count);

// The dead letters of `first` to `last` are written, or never will be: the records that waited for them are archived,
// for good, whether the write succeeds or not.
//
// # Safety
// `write` must be null or writable.
SharecoreStatus sharecore_finish_archiving(SharecorePartition partition,
                                           int64_t first,
                                           int64_t last,
                                           SharecoreWrite *write);

// Offsets, counts and the next deadline of a partition.
//
// # Safety
// `state` must be null or writable.
SharecoreStatus sharecore_inspect(SharecorePartition partition, SharecoreState *state);

// The in-flight records from the start offset; neighbors with the same state and count are merged.
//
// TOO_SMALL: ask again with a larger array.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_inflight(SharecorePartition partition,
                                   SharecoreStateBatch *out,
                                   size_t capacity,
                                   size_t *count);

// Checks every invariant of the engine, for tests and simulation; on BROKEN the message names the broken one.
SharecoreStatus sharecore_check(SharecorePartition partition);

// Fills in rules without effect, with sharecore's defaults for the other fields.
//
// # Safety
// `rules` must be null or writable.
SharecoreStatus sharecore_rules_default(SharecoreRules *rules);

// As `sharecore_create`, with rules.
//
// # Safety
// `config` and `rules` must be null or readable, `partition` null or writable.
SharecoreStatus sharecore_create_managed(const SharecoreConfig *config,
                                         const SharecoreRules *rules,
                                         int64_t start_offset,
                                         SharecorePartition *partition);

// As `sharecore_load`, with rules. Records delivered before back off as if released now.
//
// # Safety
// `config` and `rules` must be null or readable, `partition` null or writable, and `batches` point to `batch_count`
// elements.
SharecoreStatus sharecore_load_managed(const SharecoreConfig *config,
                                       const SharecoreRules *rules,
                                       int64_t now_ms,
                                       int64_t start_offset,
                                       const SharecoreStateBatch *batches,
                                       size_t batch_count,
                                       SharecorePartition *partition);

// Sets a partition's rules, or removes them with null. Running waits are kept; without rules all waits end.
//
// # Safety
// `rules` must be null or readable.
SharecoreStatus sharecore_set_rules(SharecorePartition partition,
                                    const SharecoreRules *rules);

// Where to read for a member's fetch. Applies delivery times that are due.
//
// # Safety
// `wanted` must be null or writable.
SharecoreStatus sharecore_wanted(SharecorePartition partition,
                                 int64_t now_ms,
                                 int64_t wall_ms,
                                 SharecoreWanted *wanted);

// Admits record batches read from the log from `fetch_offset`, before they can be acquired. `admitted` is false, and
// nothing changes, if they do not continue what was admitted before. BAD_ARGUMENT: `looks_for` is 0.
//
// # Safety
// Each pointer must be null or point to as many elements as its count says; `admitted` must be null or writable.
SharecoreStatus sharecore_admit(SharecorePartition partition,
                                int64_t now_ms,
                                int64_t wall_ms,
                                int64_t fetch_offset,
                                const SharecoreRange *batches,
                                size_t batch_count,
                                const SharecoreEntry *entries,
                                size_t entry_count,
                                int64_t batch_size,
                                bool *admitted);

// As `sharecore_advance`; also applies delivery times and expiry by `now_ms` and `wall_ms`, milliseconds since the
// epoch.
//
// # Safety
// `write` must be null or writable.
SharecoreStatus sharecore_advance_at(SharecorePartition partition,
                                     int64_t now_ms,
                                     int64_t wall_ms,
                                     SharecoreWrite *write);

// As `sharecore_commit`; released records back off from `now_ms`.
//
// INVALID_REQUEST: the write has ended, or never existed.
SharecoreStatus sharecore_commit_at(SharecorePartition partition,
                                    uint64_t write_id,
                                    int64_t now_ms);

// Why records are not delivered, and when that changes by itself.
//
// # Safety
// `waiting` must be null or writable.
SharecoreStatus sharecore_waiting(SharecorePartition partition, SharecoreWaiting *waiting);

// Why records are not delivered, with due times and the state of the order. Without rules only `leased`, `kept` and
// `is_full` differ from 0 and never.
//
// # Safety
// `details` must be null or writable.
SharecoreStatus sharecore_waiting_details(SharecorePartition partition,
                                          SharecoreWaitingDetails *details);

// The keys with the most unfinished records, at most `capacity` of them, the largest first. None without order by key.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_keys(SharecorePartition partition,
                               SharecoreKey *out,
                               size_t capacity,
                               size_t *count);

// Restarts the expired locks of a member that is still connected; call it before `sharecore_advance` or
// `sharecore_advance_at` with the same time. A lock lasts up to `max_ms` after its records were delivered or renewed.
// The delivery count stays, and nothing has to be persisted.
//
// # Safety
// `member` must be null or point to `member_length` bytes.
SharecoreStatus sharecore_keep_locks(SharecorePartition partition,
                                     int64_t now_ms,
                                     const char *member,
                                     size_t member_length,
                                     int64_t max_ms);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHARECORE_H */
