package kafka.server.share;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.server.share.persister.*;

import java.util.*;
import java.util.concurrent.CompletableFuture;

/** Keeps what was written; answers at once, with a failure, or when told to. */
final class MemPersister implements Persister {
    static final Uuid TOPIC = new Uuid(7, 7);
    static final CompletableFuture<WriteShareGroupStateResult> OK = CompletableFuture.completedFuture(writeResult((short) 0));
    final boolean record;
    List<PersisterStateBatch> state;
    long startOffset;
    List<Write> writes = new ArrayList<>();               // of the current op
    final ArrayDeque<Write> held = new ArrayDeque<>();
    boolean hold;
    int failNext;
    short failCode;
    long count, batchCount;

    MemPersister(boolean record, long startOffset, List<PersisterStateBatch> state) {
        this.record = record;
        this.startOffset = startOffset;
        this.state = state;
    }

    public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters r) {
        return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(TOPIC,
            List.of(PartitionFactory.newPartitionAllData(0, 0, startOffset, (short) 0, "", state))))).build());
    }

    public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters r) {
        count++;
        if (!record) return OK;
        PartitionStateBatchData d = r.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
        batchCount += d.stateBatches().size();
        Write w = new Write(d.startOffset(), d.deliveryCompleteCount(), d.stateBatches(), new CompletableFuture<>());
        writes.add(w);
        if (hold) {
            held.add(w);
        } else if (failNext > 0) {
            failNext--;
            w.future.complete(writeResult(failCode));
        } else {
            store(w);
            w.future.complete(writeResult((short) 0));
        }
        return w.future;
    }

    void store(Write w) {
        startOffset = w.startOffset == -1 ? startOffset : w.startOffset;
        state = new PersisterStateBatchCombiner(state, w.batches, w.startOffset).combineStateBatches();
    }

    public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters r) { throw new UnsupportedOperationException(); }
    public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters r) { throw new UnsupportedOperationException(); }
    public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters r) { throw new UnsupportedOperationException(); }
    public void stop() { }

    static WriteShareGroupStateResult writeResult(short code) {
        return new WriteShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(TOPIC,
            List.of(PartitionFactory.newPartitionErrorData(0, code, Errors.forCode(code).message()))))).build();
    }

    record Write(long startOffset, int deliveryComplete, List<PersisterStateBatch> batches, CompletableFuture<WriteShareGroupStateResult> future) { }
}
