package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.util.*;
import java.util.function.Supplier;

/** Runs operations through the share coordinator's shard; prints its answers and the bytes of its records. */
final class State {
    private static final int PARTITIONS = 1 << 20;

    private final Clock clock = new Clock();
    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private final ShareCoordinatorShard shard;
    private long offset;

    private State(int updatesPerSnapshot) {
        var settings = Map.of(ShareCoordinatorConfig.SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT_CONFIG, updatesPerSnapshot);
        var log = new LogContext();
        var builder = new ShareCoordinatorShard.Builder(new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, settings)));
        builder.withSnapshotRegistry(new SnapshotRegistry(log)).withLogContext(log).withTime(clock)
            .withCoordinatorMetrics(new ShareCoordinatorMetrics(new Metrics())).withTopicPartition(new TopicPartition("__share_group_state", 0));
        shard = builder.build();
        shard.onLoaded(new EveryTopic());
    }

    static void state(String file) throws IOException {
        PrintWriter out = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out), 1 << 16));
        State state = null;
        try (BufferedReader in = Op.open(file)) {
            for (String line; (line = in.readLine()) != null; ) {
                JsonNode op = Op.JSON.readTree(line);
                if (op.get("op").asText().equals("begin")) state = new State(op.get("updates_per_snapshot").asInt());
                else out.println(Op.JSON.writeValueAsString(Objects.requireNonNull(state).run(op)));
            }
        }
        out.flush();
    }

    private Map<String, Object> run(JsonNode op) {
        clock.now = op.get("now").asLong();
        String group = op.get("group").asText();
        Uuid topic = Uuid.fromString(op.get("topic").asText());
        int partition = op.get("partition").asInt();
        return switch (op.get("op").asText()) {
            case "initialize" -> {
                var asked = new InitializeShareGroupStateRequestData().setGroupId(group).setTopics(List.of(
                    new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(topic).setPartitions(List.of(
                        new InitializeShareGroupStateRequestData.PartitionData().setPartition(partition)
                            .setStateEpoch(op.get("state_epoch").asInt()).setStartOffset(op.get("start").asLong())))));
                yield done(() -> shard.initializeState(asked), answer ->
                    List.of(answer.results().get(0).partitions().get(0).errorCode()));
            }
            case "write" -> {
                List<WriteShareGroupStateRequestData.StateBatch> batches = new ArrayList<>();
                for (JsonNode b : op.get("batches")) batches.add(new WriteShareGroupStateRequestData.StateBatch()
                    .setFirstOffset(b.get(0).asLong()).setLastOffset(b.get(1).asLong())
                    .setDeliveryState((byte) b.get(2).asInt()).setDeliveryCount((short) b.get(3).asInt()));
                var asked = new WriteShareGroupStateRequestData().setGroupId(group).setTopics(List.of(
                    new WriteShareGroupStateRequestData.WriteStateData().setTopicId(topic).setPartitions(List.of(
                        new WriteShareGroupStateRequestData.PartitionData().setPartition(partition)
                            .setStateEpoch(op.get("state_epoch").asInt()).setLeaderEpoch(op.get("leader_epoch").asInt())
                            .setStartOffset(op.get("start").asLong()).setDeliveryCompleteCount(op.get("complete").asInt())
                            .setStateBatches(batches)))));
                yield done(() -> shard.writeState(asked), answer ->
                    List.of(answer.results().get(0).partitions().get(0).errorCode()));
            }
            case "read" -> {
                var asked = new ReadShareGroupStateRequestData().setGroupId(group).setTopics(List.of(
                    new ReadShareGroupStateRequestData.ReadStateData().setTopicId(topic).setPartitions(List.of(
                        new ReadShareGroupStateRequestData.PartitionData().setPartition(partition)
                            .setLeaderEpoch(op.get("leader_epoch").asInt())))));
                yield done(() -> shard.readStateAndMaybeUpdateLeaderEpoch(asked), answer -> {
                    var found = answer.results().get(0).partitions().get(0);
                    if (found.errorCode() != 0) return List.of(found.errorCode());
                    List<List<Object>> batches = new ArrayList<>();
                    found.stateBatches().forEach(b ->
                        batches.add(List.of(b.firstOffset(), b.lastOffset(), b.deliveryState(), b.deliveryCount())));
                    return List.of(0, found.stateEpoch(), found.startOffset(), batches);
                });
            }
            case "summary" -> {
                var asked = new ReadShareGroupStateSummaryRequestData().setGroupId(group).setTopics(List.of(
                    new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData().setTopicId(topic).setPartitions(List.of(
                        new ReadShareGroupStateSummaryRequestData.PartitionData().setPartition(partition)))));
                yield done(() -> shard.readStateSummary(asked), answer -> {
                    var found = answer.results().get(0).partitions().get(0);
                    return List.of(found.errorCode(), found.stateEpoch(), found.leaderEpoch(), found.startOffset(), found.deliveryCompleteCount());
                });
            }
            case "delete" -> {
                var asked = new DeleteShareGroupStateRequestData().setGroupId(group).setTopics(List.of(
                    new DeleteShareGroupStateRequestData.DeleteStateData().setTopicId(topic).setPartitions(List.of(
                        new DeleteShareGroupStateRequestData.PartitionData().setPartition(partition)))));
                yield done(() -> shard.deleteState(asked), answer ->
                    List.of(answer.results().get(0).partitions().get(0).errorCode()));
            }
            default -> throw new IllegalArgumentException(op.toString());
        };
    }

    private interface Answer<T> {
        List<Object> of(T response);
    }

    /** Replays the records as the coordinator's runtime does. */
    private <T> Map<String, Object> done(Supplier<CoordinatorResult<T, CoordinatorRecord>> operation, Answer<T> answer) {
        CoordinatorResult<T, CoordinatorRecord> result = operation.get();
        List<List<String>> records = new ArrayList<>();
        for (CoordinatorRecord record : result.records()) {
            byte[] value = serde.serializeValue(record);
            records.add(Arrays.asList(hex(serde.serializeKey(record)), value == null ? null : hex(value)));
            shard.replay(offset++, -1, (short) -1, record);
        }
        return Map.of("answer", answer.of(result.response()), "records", records);
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    private static final class Clock implements Time {
        long now;

        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000; }
        @Override public void sleep(long ms) { now += ms; }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { throw new UnsupportedOperationException(); }
    }

    /** All topics exist. */
    private static final class EveryTopic implements CoordinatorMetadataImage {
        private record Topic(String name, Uuid id) implements TopicMetadata {
            @Override public int partitionCount() { return PARTITIONS; }
            @Override public List<String> partitionRacks(int partition) { return List.of(); }
        }

        @Override public Set<Uuid> topicIds() { return Set.of(); }
        @Override public Set<String> topicNames() { return Set.of(); }
        @Override public Optional<TopicMetadata> topicMetadata(String name) { return Optional.empty(); }
        @Override public Optional<TopicMetadata> topicMetadata(Uuid id) { return Optional.of(new Topic("topic", id)); }
        @Override public CoordinatorMetadataDelta emptyDelta() { return CoordinatorMetadataDelta.EMPTY; }
        @Override public long version() { return 0; }
        @Override public boolean isEmpty() { return false; }
    }
}
