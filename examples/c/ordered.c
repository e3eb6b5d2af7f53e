/* Records of a key one after the other, a back-off, and why the others wait.

     make capi && cc -I build/capi/include examples/c/ordered.c build/capi/lib/libsharecore.so -o ordered && ./ordered */
#include <sharecore.h>
#include <stdio.h>
#include <stdlib.h>

static void check(SharecoreStatus status, const char *call) {
  char message[256];
  if (status == SHARECORE_STATUS_OK) return;
  sharecore_last_error(message, sizeof message);
  fprintf(stderr, "%s: %s (%d)\n", call, message, (int)status);
  exit(1);
}
#define CHECK(call) check(call, #call)

static const int64_t WALL_MS = 1700000000000; /* the time since the epoch; the other times here are monotonic */
static const SharecoreRange LOG = {0, 3};     /* a batch of four records */

static void take(SharecorePartition queue, int64_t now_ms) {
  SharecoreWanted wanted;
  SharecoreAcquired got[4];
  size_t count = 0;
  CHECK(sharecore_wanted(queue, now_ms, WALL_MS, &wanted));
  if (wanted.admits) { /* the caller reads the records; their keys have the hashes 7, 8, 7 and 7 */
    const uint64_t digests[] = {7, 8, 7, 7};
    SharecoreEntry entries[4];
    bool admitted;
    for (int64_t i = 0; i < 4; i++)
      entries[i] = (SharecoreEntry){i, .not_before_ms = INT64_MIN, .expires_ms = INT64_MAX, .digest = digests[i]};
    CHECK(sharecore_admit(queue, now_ms, WALL_MS, wanted.offset, &LOG, 1, entries, 4, 500, &admitted));
    CHECK(sharecore_wanted(queue, now_ms, WALL_MS, &wanted));
  }
  SharecoreFetch fetch = {.fetch_offset = wanted.offset, .max_fetch_records = 4, .batch_size = 4};
  if (wanted.offset >= 0) CHECK(sharecore_acquire(queue, now_ms, "worker", 6, &LOG, 1, &fetch, got, 4, &count));
  for (size_t i = 0; i < count; i++)
    printf("%d ms: takes %d-%d\n", (int)now_ms, (int)got[i].first, (int)got[i].last);
}

static void tell(SharecorePartition queue) {
  SharecoreWaitingDetails details;
  SharecoreKey largest;
  size_t count;
  CHECK(sharecore_waiting_details(queue, &details));
  CHECK(sharecore_keys(queue, &largest, 1, &count));
  printf("%d acquired, %d behind, %d in back-off", (int)details.leased, (int)details.behind, (int)details.backoff);
  if (details.backoff > 0) printf(" until %d ms", (int)details.backoff_due_ms);
  printf("; key %d has %d records from %d\n", (int)largest.digest, (int)largest.records, (int)largest.first);
}

int main(void) {
  SharecoreConfig config;
  SharecoreRules rules;
  SharecorePartition queue;
  SharecoreWrite write;
  CHECK(sharecore_config_default(&config));
  CHECK(sharecore_rules_default(&rules));
  rules.ordering = 1;
  rules.looks_for = 1;
  rules.backoff_ms = 1000;
  rules.jitter = 0;
  CHECK(sharecore_create_managed(&config, &rules, 0, &queue));
  take(queue, 0);
  tell(queue);
  const uint8_t types[] = {2, 1}; /* the first record is to come again, the second one is done */
  SharecoreAcknowledgement answer = {.first = 0, .last = 1, .types = types, .type_count = 2};
  CHECK(sharecore_acknowledge(queue, 20, "worker", 6, &answer, 1, &write));
  CHECK(sharecore_commit_at(queue, write.id, 20)); /* persisted, as in queue.c */
  take(queue, 30);
  tell(queue);
  CHECK(sharecore_advance_at(queue, 1020, WALL_MS, &write));
  take(queue, 1020);
  CHECK(sharecore_free(queue));
  return 0;
}
