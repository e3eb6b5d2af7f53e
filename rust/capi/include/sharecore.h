#ifndef SHARECORE_H
#define SHARECORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libsharecore: the in-flight state of Kafka share partitions (KIP-932). docs/c-abi.md tells how to use it.
   Made from rust/capi by `make capi-header`; do not edit. */

// How a call ended. What is positive has Kafka's error codes; what is negative means a defect of the caller or of the
// library. After anything but OK and TOO_SMALL the partition is as it was before the call, save that
// renewals in front of what an acknowledgement was refused for stand.
enum SharecoreStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  SHARECORE_STATUS_OK = 0,
  // Refused: the request makes no sense (Kafka's INVALID_REQUEST).
  SHARECORE_STATUS_INVALID_REQUEST = 42,
  // Refused: the records are not in a state that allows it (Kafka's INVALID_RECORD_STATE).
  SHARECORE_STATUS_INVALID_RECORD_STATE = 121,
  // A pointer is null that must not be, or points where its type cannot lie.
  SHARECORE_STATUS_BAD_POINTER = -1,
  // The partition was freed or never made.
  SHARECORE_STATUS_BAD_PARTITION = -2,
  // An argument that no request can hold: a name that is not UTF-8, a limit of zero, ranges out of order.
  SHARECORE_STATUS_BAD_ARGUMENT = -3,
  // Done, but the array is too small: its first elements are there, the count tells how many there are.
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
  // How often a record is delivered before it is given up; positive.
  uint16_t max_delivery_count;
  // Whether members may renew their locks.
  bool renew_enabled;
  // Whether what is rejected or given up waits for a dead letter before it is archived (KIP-1191).
  bool dead_letters;
  // How many offsets may be in flight; positive.
  int64_t max_inflight;
  // How long an acquisition lock lasts, in milliseconds; positive.
  int64_t lock_ms;
} SharecoreConfig;

// A partition: a number, not an address. 0 is none. Any thread may use it; calls on one partition wait for each other.
typedef uint64_t SharecorePartition;

// Offsets of one state and delivery count.
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

// The offsets first to last, both included: a record batch of the log.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
} SharecoreRange;

// What a fetch asks for.
typedef struct {
  // The offset that was read from.
  int64_t fetch_offset;
  // How many records the member wants; it gets whole record batches, so it may get more unless `record_limit`.
  int64_t max_fetch_records;
  // After how many offsets newly acquired records start another batch, at the next edge of a record batch.
  int64_t batch_size;
  // Never more than `max_fetch_records`.
  bool record_limit;
} SharecoreFetch;

// Offsets that a member has been given.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
  // How often they have been delivered, this time included.
  uint16_t delivery_count;
} SharecoreAcquired;

// What a member says of the records first to last.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
  // 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
  const uint8_t *types;
  // 1, or one type an offset.
  size_t type_count;
} SharecoreAcknowledgement;

// State that has begun to change and waits for the persister, until it is committed or rolled back.
typedef struct {
  // Names the write; 0 when there is nothing to persist.
  uint64_t id;
  // The start offset from before the operation.
  int64_t start_offset;
  // Settled records at or behind the start offset (KIP-1226).
  int64_t delivery_complete_count;
  // How many state batches `sharecore_write_batches` gives.
  size_t batch_count;
} SharecoreWrite;

// Neighbouring records that wait for a dead letter each.
typedef struct {
  // First offset.
  int64_t first;
  // Last offset.
  int64_t last;
  // How often the records were delivered.
  uint16_t delivery_count;
  // A member rejected them; else they came to their delivery limit. Guessed by the delivery count in loaded state.
  bool rejected;
} SharecoreDeadLetter;

// Where a partition stands.
typedef struct {
  // The lowest offset that is not settled (SPSO).
  int64_t start_offset;
  // The highest offset in flight; while nothing is, the next one to fetch.
  int64_t end_offset;
  // Where the next fetch should read.
  int64_t next_fetch_offset;
  // Settled records at or behind the start offset (KIP-1226).
  int64_t delivery_complete_count;
  // When the next acquisition lock runs out; INT64_MAX when none is held.
  int64_t next_deadline_ms;
  // How many runs the in-flight records make.
  size_t runs;
  // Bytes held, indexes included.
  size_t memory_bytes;
  // Whether the in-flight limit lets anything be acquired.
  bool can_acquire;
} SharecoreState;

// Which records come only after others, and when they come and come again.
typedef struct {
  // 0 none; 1 by key, as the entries of `sharecore_admit` say; 2 all records of the partition, one after the other.
  uint8_t ordering;
  // Whether records wait that a member releases.
  bool on_release;
  // Whether records wait whose lock ran out.
  bool on_timeout;
  // Whether expired records wait for a dead letter.
  bool expired_letters;
  // How many records of one order may be leased together, to one member; positive.
  int64_t run_max;
  // The wait before the second delivery, in milliseconds; 0: none.
  int64_t backoff_ms;
  // The longest wait.
  int64_t backoff_max_ms;
  // How much longer each wait is than the one before; 1 and up.
  double multiplier;
  // A wait is longer by up to this part of it; 0 to 1.
  double jitter;
  // How many records may be in the window that are neither leased nor settled; positive.
  int64_t max_waiting;
  // 0: records have no entries. Else any number; with another one the window is admitted anew, with other entries.
  uint64_t looks_for;
} SharecoreRules;

// What of the log is to be read next.
typedef struct {
  // Where to read; -1: nothing can be acquired now.
  int64_t offset;
  // How many records at most, where they have to be admitted.
  int64_t max_records;
  // Whether they go to `sharecore_admit` before they can be acquired.
  bool admits;
} SharecoreWanted;

// What a record says. It counts for the offsets up to the next entry, too.
typedef struct {
  // The record's offset.
  int64_t offset;
  // Not delivered before this time, in milliseconds since the epoch; INT64_MIN: at once.
  int64_t not_before_ms;
  // Given up at this time, in milliseconds since the epoch; INT64_MAX: never.
  int64_t expires_ms;
  // Stands for its key, a hash that strangers cannot aim at; 0: it has none, and no order.
  uint64_t digest;
} SharecoreEntry;

// Why records of a share partition do not come.
typedef struct {
  // Records that wait for the end of their back-off.
  int64_t backoff;
  // Records whose delivery time has not come.
  int64_t delivery;
  // Records that come after others of their key.
  int64_t behind;
  // Records that members hold.
  int64_t leased;
  // Whether no new records come into the window.
  bool is_full;
  // When `sharecore_advance_at` has something to do by the monotonic clock; INT64_MAX: never.
  int64_t next_time_ms;
  // The same in milliseconds since the epoch.
  int64_t next_wall_ms;
} SharecoreWaiting;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The message of this thread's last call that did not end with OK: copied, as much of it as fits, with a zero behind it.
//
// Returns the bytes that the whole message takes, the zero included; 1 when nothing has failed yet. `out` may be null
// when `capacity` is 0.
//
// # Safety
// `out` must point to `capacity` writable bytes.
size_t sharecore_last_error(char *out,
                            size_t capacity);

// Fills in the limits that Kafka has unless told otherwise.
//
// # Safety
// `config` must be null or writable.
SharecoreStatus sharecore_config_default(SharecoreConfig *config);

// A new partition that begins at `start_offset`, with nothing in flight.
//
// # Safety
// `config` must be null or readable, `partition` null or writable.
SharecoreStatus sharecore_create(const SharecoreConfig *config,
                                 int64_t start_offset,
                                 SharecorePartition *partition);

// A partition as it was persisted: nothing is leased, and offsets that no state batch covers are fetched again.
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

// Changes the limits; what is leased already keeps its deadline.
//
// # Safety
// `config` must be null or readable.
SharecoreStatus sharecore_configure(SharecorePartition partition, const SharecoreConfig *config);

// Ends a partition. What other threads have begun with it ends first; whoever uses it later is told BAD_PARTITION.
SharecoreStatus sharecore_free(SharecorePartition partition);

// Leases to a member what is available of the record batches that the log returned, which ascend and do not overlap.
//
// TOO_SMALL: all is leased; `sharecore_acquired` gives it again to a larger array.
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

// What this thread's last `sharecore_acquire` leased, once more.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_acquired(SharecoreAcquired *out, size_t capacity, size_t *count);

// Settles, releases or renews records that a member holds: all of the request or, when it is refused, nothing but
// the renewals in front of what it was refused for. What lies before the start offset is passed over.
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

// Gives back all that a member holds: its session has closed.
//
// # Safety
// `member` must point to `member_length` bytes; `write` must be null or writable.
SharecoreStatus sharecore_release(SharecorePartition partition,
                                  const char *member,
                                  size_t member_length,
                                  SharecoreWrite *write);

// The state batches of an open write, in order of their offsets, equal neighbours joined.
//
// INVALID_REQUEST: the write has ended, or never was. TOO_SMALL: ask again with a larger array.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_write_batches(SharecorePartition partition,
                                        uint64_t write_id,
                                        SharecoreStateBatch *out,
                                        size_t capacity,
                                        size_t *count);

// The write is durable: what it changed may change again, and the start offset moves over what is settled.
//
// INVALID_REQUEST: the write has ended, or never was. BAD_ARGUMENT: the partition has rules.
SharecoreStatus sharecore_commit(SharecorePartition partition,
                                 uint64_t write_id);

// The write failed: what it changed is as before, save for locks that have run out meanwhile.
//
// INVALID_REQUEST: the write has ended, or never was.
SharecoreStatus sharecore_rollback(SharecorePartition partition, uint64_t write_id, int64_t now_ms);

// Ends the acquisition locks that have run out. BAD_ARGUMENT: the partition has rules.
//
// # Safety
// `write` must be null or writable.
SharecoreStatus sharecore_advance(SharecorePartition partition,
                                  int64_t now_ms,
                                  SharecoreWrite *write);

// Retention or DeleteRecords moved the log's start. Nothing is to be persisted: the start offset goes with the next write.
SharecoreStatus sharecore_move_log_start(SharecorePartition partition,
                                         int64_t offset);

// Offsets that hold no record for this group: aborted transactions, control records.
SharecoreStatus sharecore_archive(SharecorePartition partition, int64_t first, int64_t last);

// The log holds nothing from `first` to `last`, as a fetch from `first` has shown. Nothing is to be persisted.
SharecoreStatus sharecore_pass_hole(SharecorePartition partition,
                                    int64_t first,
                                    int64_t last);

// Joins new state batches with those persisted before, and drops what lies before `start_offset` (-1: nothing).
//
// The result ascends and does not overlap; at most twice as many batches go out as came in.
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

// The dead letters that have become due since the last call, in the order in which they did.
//
// TOO_SMALL: nothing is taken; ask again with a larger array.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_take_dead_letters(SharecorePartition partition,
                                            SharecoreDeadLetter *out,
                                            size_t capacity,
                                            size_t *count);

// The letters of `first` to `last` are written, or never will be: what waited for them is archived, and stays so whether
// the write succeeds or not.
//
// # Safety
// `write` must be null or writable.
SharecoreStatus sharecore_finish_archiving(SharecorePartition partition,
                                           int64_t first,
                                           int64_t last,
                                           SharecoreWrite *write);

// Where the partition stands: offsets, counts, the next deadline.
//
// # Safety
// `state` must be null or writable.
SharecoreStatus sharecore_inspect(SharecorePartition partition, SharecoreState *state);

// The in-flight records from the start offset on; neighbours of one state and count are joined.
//
// TOO_SMALL: ask again with a larger array.
//
// # Safety
// `out` must point to `capacity` writable elements, `count` be null or writable.
SharecoreStatus sharecore_inflight(SharecorePartition partition,
                                   SharecoreStateBatch *out,
                                   size_t capacity,
                                   size_t *count);

// Checks every invariant of the engine, for tests and simulation; BROKEN and the message tell which does not hold.
SharecoreStatus sharecore_check(SharecorePartition partition);

// Fills in rules that change nothing, with sharecore's defaults for the rest.
//
// # Safety
// `rules` must be null or writable.
SharecoreStatus sharecore_rules_default(SharecoreRules *rules);

// As `sharecore_load`, with rules. Records that were delivered before wait as if they had been released now.
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

// Gives a partition rules, other rules, or with null none. Times that run are kept; without rules nothing waits.
//
// # Safety
// `rules` must be null or readable.
SharecoreStatus sharecore_set_rules(SharecorePartition partition,
                                    const SharecoreRules *rules);

// Where to read for a member that wants records. Times that have come count from this call on.
//
// # Safety
// `wanted` must be null or writable.
SharecoreStatus sharecore_wanted(SharecorePartition partition,
                                 int64_t now_ms,
                                 int64_t wall_ms,
                                 SharecoreWanted *wanted);

// Takes in record batches that the log returned for a read from `fetch_offset` on, before they can be acquired.
// `admitted`: they follow what was taken in before; if not, nothing has changed. BAD_ARGUMENT: `looks_for` is 0.
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

// As `sharecore_advance`; times come by `now_ms` and `wall_ms`, milliseconds since the epoch, and records expire.
//
// # Safety
// `write` must be null or writable.
SharecoreStatus sharecore_advance_at(SharecorePartition partition,
                                     int64_t now_ms,
                                     int64_t wall_ms,
                                     SharecoreWrite *write);

// As `sharecore_commit`; what members have released waits from `now_ms` on.
//
// INVALID_REQUEST: the write has ended, or never was.
SharecoreStatus sharecore_commit_at(SharecorePartition partition,
                                    uint64_t write_id,
                                    int64_t now_ms);

// Why records do not come, and when that changes by itself.
//
// # Safety
// `waiting` must be null or writable.
SharecoreStatus sharecore_waiting(SharecorePartition partition, SharecoreWaiting *waiting);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHARECORE_H */
