package kafka.server.share;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfigProvider;
import org.apache.kafka.server.share.PartitionMetadataProvider;
import org.apache.kafka.server.share.dlq.ShareGroupDLQManager;
import org.apache.kafka.server.share.dlq.ShareGroupDLQRecordParameter;
import org.apache.kafka.server.share.metrics.SharePartitionMetrics;
import org.apache.kafka.server.util.timer.WheelTimer;

import java.lang.reflect.Proxy;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;

/** One share partition with its clock, timer and persister. */
final class Rig {
    static final String GROUP = "g";
    static final TopicIdPartition TIP = new TopicIdPartition(MemPersister.TOPIC, new TopicPartition("t", 0));
    final Clock clock = new Clock();
    final WheelTimer timer = new WheelTimer(clock);
    final MemPersister persister;
    final Letters letters = new Letters();
    final boolean deadLetters;
    final SharePartitionMetrics metrics = new SharePartitionMetrics(GROUP, "t", 0);
    final SharePartition sp;
    final Throwable initError;

    Rig(Op init, MemPersister persister) {
        this.persister = persister;
        this.deadLetters = init.deadLetters;
        AbstractConfig c = new AbstractConfig(Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), Map.of(), false);
        GroupConfigManager groups = new GroupConfigManager(new GroupCoordinatorConfig(c), new ShareGroupConfig(c));
        ShareGroupConfigProvider limits = new ShareGroupConfigProvider(groups) {
            @Override
            public int deliveryCountLimitOrDefault(String g, int d) { return init.maxDelivery; }
            @Override
            public int partitionMaxRecordLocksOrDefault(String g, int d) { return init.maxInflight; }
            @Override
            public int recordLockDurationMsOrDefault(String g, int d) { return init.lockMs; }
            @Override
            public boolean isRenewAcknowledgeEnabled(String g) { return init.renewEnabled; }
            @Override
            public Optional<String> errorsDLQTopicName(String g) { return init.deadLetters ? Optional.of("dlq.t") : Optional.empty(); }
        };
        sp = new SharePartition(GROUP, TIP, 0, init.maxInflight, init.maxDelivery, init.lockMs, timer, clock, persister, NO_LOG, key -> { }, limits,
            SharePartition.SharePartitionState.EMPTY, null, metrics, () -> true, letters);
        initError = errorOf(sp.maybeInitialize());
    }

    void close() {
        try {
            metrics.close();   // else the registry's gauges keep the partition alive
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static Throwable errorOf(CompletableFuture<?> f) {
        if (!f.isCompletedExceptionally()) return null;
        try {
            f.join();
            return null;
        } catch (CompletionException e) {
            return e.getCause();
        }
    }

    static final class Clock implements WheelTimer.Clock {
        long ms = 1_000_000;
        public void setMs(long v) { ms = v; }
        public long milliseconds() { return ms; }
        public long hiResClockMs() { return ms; }
        public long nanoseconds() { return ms * 1_000_000; }
        public void sleep(long d) { ms += d; }
        public void waitObject(Object o, Supplier<Boolean> c, long d) { throw new UnsupportedOperationException(); }
    }

    /** The log behind the partition: never asked, as a trace begins with persisted state. */
    static final PartitionMetadataProvider NO_LOG = (PartitionMetadataProvider) Proxy.newProxyInstance(
        Rig.class.getClassLoader(), new Class<?>[] {PartitionMetadataProvider.class}, (self, method, arguments) -> {
            throw new UnsupportedOperationException(method.getName());
        });

    /** A dead-letter queue that writes when told to: all letters of one operation together. */
    static final class Letters implements ShareGroupDLQManager {
        List<ShareGroupDLQRecordParameter> asked = new ArrayList<>();   // of the current op
        final ArrayDeque<List<CompletableFuture<Void>>> held = new ArrayDeque<>();
        private List<CompletableFuture<Void>> open = new ArrayList<>();

        public CompletableFuture<Void> enqueue(ShareGroupDLQRecordParameter of) {
            asked.add(of);
            CompletableFuture<Void> written = new CompletableFuture<>();
            open.add(written);
            return written;
        }

        /** The current op is over. */
        void close() {
            held.add(open);
            open = new ArrayList<>();
        }

        public void stop() { }
    }
}
