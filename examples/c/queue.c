/* A queue of ten records that two workers take from: leases, answers, a write that is made durable, a lock that runs out.

     make capi && cc -I build/capi/include examples/c/queue.c build/capi/lib/libsharecore.so -o queue && ./queue */
#include <sharecore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(SharecoreStatus status, const char *call) {
  char message[256];
  if (status == SHARECORE_STATUS_OK) return;
  sharecore_last_error(message, sizeof message);
  fprintf(stderr, "%s: %s (%d)\n", call, message, (int)status);
  exit(1);
}
#define CHECK(call) check(call, #call)

/* A broker writes the batches to its persister here, and commits when they are durable. */
static void persist(SharecorePartition queue, const SharecoreWrite *write) {
  SharecoreStateBatch batches[8];
  size_t count;
  if (write->id == 0) return;
  CHECK(sharecore_write_batches(queue, write->id, batches, 8, &count));
  for (size_t i = 0; i < count; i++)
    printf("persist %d-%d: state %d, delivery count %d\n", (int)batches[i].first, (int)batches[i].last,
           batches[i].state, batches[i].delivery_count);
  CHECK(sharecore_commit(queue, write->id));
}

static void take(SharecorePartition queue, int64_t now_ms, const char *worker) {
  SharecoreRange log[] = {{0, 4}, {5, 9}}; /* the record batches that a read of the log returned */
  SharecoreState state;
  SharecoreAcquired got[8];
  size_t count;
  CHECK(sharecore_inspect(queue, &state));
  SharecoreFetch fetch = {.fetch_offset = state.next_fetch_offset, .max_fetch_records = 5, .batch_size = 5};
  CHECK(sharecore_acquire(queue, now_ms, worker, strlen(worker), log, 2, &fetch, got, 8, &count));
  for (size_t i = 0; i < count; i++)
    printf("%s takes %d-%d, delivery %d\n", worker, (int)got[i].first, (int)got[i].last, got[i].delivery_count);
}

int main(void) {
  SharecoreConfig config;
  SharecorePartition queue;
  SharecoreWrite write;
  CHECK(sharecore_config_default(&config));
  CHECK(sharecore_create(&config, 0, &queue));
  take(queue, 0, "worker-1");
  take(queue, 10, "worker-2");
  const uint8_t types[] = {1, 1, 2, 1, 1}; /* accept, but the third one shall come again */
  SharecoreAcknowledgement answer = {.first = 0, .last = 4, .types = types, .type_count = 5};
  CHECK(sharecore_acknowledge(queue, 20, "worker-1", 8, &answer, 1, &write));
  persist(queue, &write);
  CHECK(sharecore_advance(queue, 10 + config.lock_ms, &write)); /* worker-2 is too slow */
  persist(queue, &write);
  take(queue, 50000, "worker-1");
  CHECK(sharecore_free(queue));
  return sharecore_free(queue) == SHARECORE_STATUS_BAD_PARTITION ? 0 : 1; /* freed already, and refused */
}
