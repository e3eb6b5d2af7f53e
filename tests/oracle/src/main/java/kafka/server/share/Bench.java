package kafka.server.share;

import org.apache.kafka.server.storage.log.FetchIsolation;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.*;

/** Times the replay of a trace, and weighs what is in flight. */
final class Bench {
    private Bench() { }

    static final class Tally { long nanos, cpuNanos, gcMs, acquired, acked, errors, throwsCount, writes; }

    static long cpu() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    static long gcMs() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream().mapToLong(b -> Math.max(0, b.getCollectionTime())).sum();
    }

    static Tally once(List<Op> ops) {
        Tally t = new Tally();
        List<Rig> rigs = new ArrayList<>();
        Rig rig = null;
        SharePartition sp = null;
        long g0 = gcMs(), c0 = cpu(), t0 = System.nanoTime();
        for (Op o : ops) {
            switch (o.kind) {
                case 0 -> {
                    long x = System.nanoTime(), y = cpu();   // making a partition (metrics, configs) is not timed
                    rig = new Rig(o, new MemPersister(false, o.startOffset, o.state));
                    rigs.add(rig);
                    sp = rig.sp;
                    t0 += System.nanoTime() - x;
                    c0 += cpu() - y;
                }
                case 1 -> {
                    // the broker asks for the next fetch offset before each read, so it is asked (and timed) here too
                    long next = sp.nextFetchOffset();
                    try {
                        t.acquired += sp.acquire(o.member, o.mode, o.batchSize, o.maxFetch,
                            o.fetchOffset >= 0 ? o.fetchOffset : next, o.data, FetchIsolation.HIGH_WATERMARK).count();
                    } catch (IllegalArgumentException e) {
                        t.throwsCount++;             // 4.4.0 does this at the in-flight limit
                    }
                }
                case 2 -> {
                    try {
                        if (sp.acknowledge(o.member, o.acks).isCompletedExceptionally()) t.errors++;
                        else t.acked += o.records;
                    } catch (NullPointerException e) {
                        t.throwsCount++;             // and this where the batch begins below all that it knows
                    }
                }
                case 3 -> sp.releaseAcquiredRecords(o.member);
                case 4 -> rig.timer.advanceClock(o.arg);
                case 5 -> sp.updateCacheAndOffsets(o.arg);
                default -> throw new IllegalArgumentException("bench takes no " + Op.KINDS[o.kind] + " ops");
            }
        }
        t.nanos = System.nanoTime() - t0;
        t.cpuNanos = cpu() - c0;
        t.gcMs = gcMs() - g0;
        for (Rig r : rigs) { t.writes += r.persister.count; r.close(); }
        return t;
    }

    /** What is reachable; what waits to be finalised goes a collection later than the rest, after a while. */
    static long used() {
        long before, now = Long.MAX_VALUE;
        do {
            before = now;
            System.gc();
            try { Thread.sleep(50); } catch (InterruptedException e) { throw new IllegalStateException(e); }
            now = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        } while (before - now > 1000);
        return now;
    }

    /** Heap held per in-flight record: whole batches of 500, then the same split to per-offset state by one ack each. */
    static Map<String, Object> heap() throws IOException {
        int batches = 20000, split = 1000;
        List<Op> ops = new ArrayList<>(), acks = new ArrayList<>();
        Op init = Op.parse("{\"op\":\"init\",\"max_inflight\":100000000}");
        for (int b = 0; b < batches; b++) {
            long f = b * 500L;
            ops.add(Op.parse("{\"op\":\"acquire\",\"member\":\"m1\",\"fetch_offset\":" + f + ",\"batches\":[[" + f + "," + (f + 499) + "]]}"));
            if (b < split) acks.add(Op.parse("{\"op\":\"ack\",\"member\":\"m1\",\"batches\":[{\"first\":" + (f + 1) + ",\"last\":" + (f + 1) + ",\"types\":[1]}]}"));
        }
        Rig rig = new Rig(init, new MemPersister(false, 0, List.of()));
        long h0 = used();
        for (Op o : ops) rig.sp.acquire(o.member, o.mode, o.batchSize, o.maxFetch, o.fetchOffset, o.data, FetchIsolation.HIGH_WATERMARK);
        long h1 = used();
        for (Op o : acks) rig.sp.acknowledge(o.member, o.acks);
        long h2 = used();
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("heap_bytes_per_inflight_batch", (h1 - h0) / (double) batches);
        m.put("heap_bytes_per_inflight_record_batch_state", (h1 - h0) / (500.0 * batches));
        m.put("heap_bytes_per_inflight_record_offset_state", (h2 - h1) / (500.0 * split));
        rig.close();
        return m;
    }

    static double median(double[] a) {
        double[] b = a.clone();
        Arrays.sort(b);
        return b.length % 2 == 1 ? b[b.length / 2] : (b[b.length / 2 - 1] + b[b.length / 2]) / 2;
    }

    static double r3(double x) {
        return Math.round(x * 1000) / 1000.0;
    }

    static void rates(Map<String, Object> m, String clock, double[] ms, long ops, long recs) {
        double med = median(ms), min = Arrays.stream(ms).min().orElse(0);
        m.put(clock + "_ms", Arrays.stream(ms).map(Bench::r3).toArray());
        m.put(clock + "_ms_median", r3(med));
        m.put(clock + "_ms_min", r3(min));
        m.put(clock + "_ops_per_s_median", Math.round(ops * 1000.0 / med));
        m.put(clock + "_records_per_s_median", Math.round(recs * 1000.0 / med));
    }

    static void bench(String file, int warmup, int runs, boolean heap) throws IOException {
        Map<String, Object> heapUse = heap ? heap() : Map.of();    // first, while nothing else comes and goes
        List<Op> ops = Op.load(file);
        long n = ops.stream().filter(o -> o.kind != 0).count();
        for (int i = 0; i < warmup; i++) once(ops);
        double[] ms = new double[runs], cpu = new double[runs], gc = new double[runs];
        Tally t = null;
        for (int i = 0; i < runs; i++) {
            System.gc();
            t = once(ops);
            ms[i] = t.nanos / 1e6;
            cpu[i] = t.cpuNanos / 1e6;
            gc[i] = t.gcMs;
        }
        long recs = t.acquired + t.acked;
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("file", Path.of(file).getFileName().toString());
        m.put("ops", n);
        m.put("records_acquired", t.acquired);
        m.put("records_acked", t.acked);
        m.put("ack_errors", t.errors);
        m.put("throws", t.throwsCount);
        m.put("persister_writes", t.writes);
        m.put("warmup", warmup);
        m.put("runs", runs);
        rates(m, "wall", ms, n, recs);
        rates(m, "cpu", cpu, n, recs);       // the benchmarking thread's own CPU time: what to read on a busy machine
        m.put("gc_ms_median", median(gc));
        m.putAll(heapUse);
        System.out.println(Op.JSON.writeValueAsString(m));
    }
}
