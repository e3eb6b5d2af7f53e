package kafka.server.share;

import kafka.server.ReplicaManager;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.metrics.SharePartitionMetrics;
import org.apache.kafka.server.util.timer.WheelTimer;

import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;

/** One share partition with its clock, timer and persister. */
final class Rig {
    static final String GROUP = "g";
    static final TopicIdPartition TIP = new TopicIdPartition(MemPersister.TOPIC, new TopicPartition("t", 0));
    static final ReplicaManager RM = StubReplicaManager.make();
    final Clock clock = new Clock();
    final WheelTimer timer = new WheelTimer(clock);
    final MemPersister persister;
    final SharePartitionMetrics metrics = new SharePartitionMetrics(GROUP, "t", 0);
    final SharePartition sp;
    final Throwable initError;

    Rig(Op init, MemPersister persister) {
        this.persister = persister;
        AbstractConfig c = new AbstractConfig(Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), Map.of(), false);
        GroupConfigManager groups = new GroupConfigManager(Map.of(), new GroupCoordinatorConfig(c), new ShareGroupConfig(c));
        if (!init.renewEnabled) {
            Properties p = new Properties();
            p.put(GroupConfig.SHARE_RENEW_ACKNOWLEDGE_ENABLE_CONFIG, "false");
            p.put(GroupConfig.SHARE_DELIVERY_COUNT_LIMIT_CONFIG, "" + init.maxDelivery);
            p.put(GroupConfig.SHARE_PARTITION_MAX_RECORD_LOCKS_CONFIG, "" + init.maxInflight);
            p.put(GroupConfig.SHARE_RECORD_LOCK_DURATION_MS_CONFIG, "" + init.lockMs);
            GroupConfig gc = GroupConfig.fromProps(Map.of(), p);
            groups = new GroupConfigManager(Map.of(), new GroupCoordinatorConfig(c), new ShareGroupConfig(c)) {
                @Override
                public Optional<GroupConfig> groupConfig(String g) { return Optional.of(gc); }
            };
        }
        sp = new SharePartition(GROUP, TIP, 0, init.maxInflight, init.maxDelivery, init.lockMs, timer, clock, persister, RM, groups,
            SharePartition.SharePartitionState.EMPTY, null, metrics);
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

    /** Only completeDelayedShareFetchRequest is ever called by SharePartition; made without running a constructor. */
    static class StubReplicaManager extends ReplicaManager {
        StubReplicaManager() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);
        }
        @Override
        public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) { }

        static ReplicaManager make() {
            try {
                var f = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
                f.setAccessible(true);
                return (ReplicaManager) ((sun.misc.Unsafe) f.get(null)).allocateInstance(StubReplicaManager.class);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
