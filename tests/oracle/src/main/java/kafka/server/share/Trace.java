package kafka.server.share;

import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.server.share.dlq.ShareGroupDLQManager;
import org.apache.kafka.server.share.dlq.ShareGroupDLQRecordParameter;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.util.*;
import java.util.concurrent.CompletableFuture;

/** One result line an operation. */
final class Trace {
    private Trace() { }

    /** [first,last,state,count] runs: adjacent offsets with equal (state,count) are one run, whatever the batches were. */
    static final class Runs {
        final StringBuilder sb = new StringBuilder("[");
        long first, last = Long.MIN_VALUE;
        int state, count;
        void add(long f, long l, int s, int c) {
            if (last != Long.MIN_VALUE && f == last + 1 && s == state && c == count) {
                last = l;
                return;
            }
            emit();
            first = f; last = l; state = s; count = c;
        }
        void emit() {
            if (last == Long.MIN_VALUE) return;
            if (sb.length() > 1) sb.append(',');
            sb.append('[').append(first).append(',').append(last).append(',').append(state).append(',').append(count).append(']');
        }
        String end() { emit(); return sb.append(']').toString(); }
    }

    static String runs(Collection<PersisterStateBatch> in) {
        Runs r = new Runs();
        in.stream().sorted().forEach(b -> r.add(b.firstOffset(), b.lastOffset(), b.deliveryState(), b.deliveryCount()));
        return r.end();
    }

    /** What the combiner leaves apart would show after a reload: slower delivery goes by the width of a batch. */
    static List<PersisterStateBatch> coalesced(List<PersisterStateBatch> in) {
        List<PersisterStateBatch> out = new ArrayList<>();
        for (PersisterStateBatch b : in.stream().sorted().toList()) {
            PersisterStateBatch last = out.isEmpty() ? null : out.get(out.size() - 1);
            if (last != null && last.lastOffset() + 1 == b.firstOffset() && last.deliveryState() == b.deliveryState() && last.deliveryCount() == b.deliveryCount()) {
                out.set(out.size() - 1, new PersisterStateBatch(last.firstOffset(), b.lastOffset(), b.deliveryState(), b.deliveryCount()));
            } else {
                out.add(b);
            }
        }
        return out;
    }

    static void snapshot(StringBuilder sb, Rig rig) {
        SharePartition sp = rig.sp;
        sb.append(",\"start_offset\":").append(sp.startOffset()).append(",\"end_offset\":").append(sp.endOffset())
            .append(",\"next_fetch_offset\":").append(sp.nextFetchOffset()).append(",\"can_acquire\":").append(sp.canAcquireRecords())
            .append(",\"delivery_complete_count\":").append(sp.deliveryCompleteCount());
        Runs r = new Runs();
        long so = sp.startOffset();
        for (InFlightBatch b : sp.cachedState().values()) {
            if (b.lastOffset() < so) continue;
            if (b.offsetState() == null) {
                r.add(Math.max(so, b.firstOffset()), b.lastOffset(), b.batchState().id(), b.batchDeliveryCount());
            } else {
                for (Map.Entry<Long, InFlightState> e : b.offsetState().tailMap(so, true).entrySet())
                    r.add(e.getKey(), e.getKey(), e.getValue().state().id(), e.getValue().deliveryCount());
            }
        }
        sb.append(",\"inflight\":").append(r.end());
        List<MemPersister.Write> w = rig.persister.writes;
        List<PersisterStateBatch> all = new ArrayList<>();
        for (MemPersister.Write x : w) all.addAll(x.batches());
        sb.append(",\"persisted\":").append(runs(all)).append(",\"write_start_offset\":").append(w.isEmpty() ? "null" : "" + w.get(0).startOffset());
        if (!rig.deadLetters) return;
        sb.append(",\"letters\":[");
        String sep = "";
        List<ShareGroupDLQRecordParameter> due = new ArrayList<>(rig.letters.asked);
        due.sort(Comparator.comparingLong(ShareGroupDLQRecordParameter::firstOffset));
        for (int k = 0; k < due.size(); ) {
            ShareGroupDLQRecordParameter letter = due.get(k);
            long last = letter.lastOffset();
            for (k++; k < due.size() && due.get(k).firstOffset() == last + 1 && due.get(k).deliveryCount().equals(letter.deliveryCount())
                && due.get(k).cause().equals(letter.cause()); k++) {
                last = due.get(k).lastOffset();
            }
            String cause = letter.cause().orElseThrow() == ShareGroupDLQManager.CLIENT_REJECT ? "reject" : "limit";
            sb.append(sep).append('[').append(letter.firstOffset()).append(',').append(last).append(',')
                .append(letter.deliveryCount().orElseThrow()).append(",\"").append(cause).append("\"]");
            sep = ",";
        }
        sb.append(']');
    }

    static String err(Throwable t) {
        return t == null ? "null" : '"' + t.getClass().getSimpleName() + '"';
    }

    static void trace(String file, boolean raw) throws IOException {
        PrintWriter out = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out), 1 << 16));
        boolean live = file.equals("-");
        Rig rig = null;
        Op init = null;
        Map<Integer, CompletableFuture<Void>> pending = new LinkedHashMap<>();
        try (BufferedReader in = Op.open(file)) {
            int i = -1;
            for (String line; (line = in.readLine()) != null; ) {
                if (line.isBlank()) continue;
                i++;
                Op o = Op.parse(line);
                StringBuilder sb = new StringBuilder("{\"i\":").append(i).append(",\"op\":\"").append(Op.KINDS[o.kind]).append('"');
                if (rig != null) {
                    rig.persister.writes = new ArrayList<>();
                    rig.letters.asked = new ArrayList<>();
                }
                try {
                    CompletableFuture<Void> f = null;
                    switch (o.kind) {
                        case 0, 8 -> {
                            if (rig != null) rig.close();
                            if (o.kind == 0) init = o;
                            MemPersister p = o.kind == 0 ? new MemPersister(true, o.startOffset, o.state)
                                : new MemPersister(true, rig.persister.startOffset, coalesced(rig.persister.state));
                            pending.clear();
                            if (raw || o.kind == 8) sb.append(",\"read_start_offset\":").append(p.startOffset).append(",\"read\":").append(runs(p.state));
                            rig = new Rig(init, p);
                            sb.append(",\"error\":").append(err(rig.initError));
                        }
                        case 1 -> {
                            long fo = o.fetchOffset >= 0 ? o.fetchOffset : rig.sp.nextFetchOffset();
                            ShareAcquiredRecords a = rig.sp.acquire(o.member, o.mode, o.batchSize, o.maxFetch, fo, o.data, FetchIsolation.HIGH_WATERMARK);
                            sb.append(",\"fetch_offset\":").append(fo).append(",\"count\":").append(a.count()).append(",\"acquired\":[");
                            String sep = "";
                            for (AcquiredRecords r : a.acquiredRecords()) {
                                sb.append(sep).append('[').append(r.firstOffset()).append(',').append(r.lastOffset()).append(',').append(r.deliveryCount()).append(']');
                                sep = ",";
                            }
                            sb.append(']');
                        }
                        case 2 -> f = rig.sp.acknowledge(o.member, o.acks);
                        case 3 -> f = rig.sp.releaseAcquiredRecords(o.member);
                        case 4 -> {
                            long before = rig.timer.fired;
                            rig.timer.advanceClock(o.arg);
                            sb.append(",\"fired\":").append(rig.timer.fired - before > 0);
                        }
                        case 5 -> rig.sp.updateCacheAndOffsets(o.arg);
                        case 6 -> {
                            rig.persister.hold = o.arg == 1;
                            rig.persister.failNext = o.n;
                            rig.persister.failCode = (short) o.maxFetch;
                        }
                        case 7 -> {
                            for (int k = 0; k < o.n && !rig.persister.held.isEmpty(); k++) {
                                MemPersister.Write w = rig.persister.held.poll();
                                if (o.maxFetch == 0) rig.persister.store(w);
                                w.future().complete(MemPersister.writeResult((short) o.maxFetch));
                            }
                            sb.append(",\"completed\":{");
                            String sep = "";
                            for (var it = pending.entrySet().iterator(); it.hasNext(); ) {
                                var e = it.next();
                                if (!e.getValue().isDone()) continue;
                                sb.append(sep).append('"').append(e.getKey()).append("\":").append(err(Rig.errorOf(e.getValue())));
                                sep = ",";
                                it.remove();
                            }
                            sb.append('}');
                        }
                    }
                    if (o.kind == 9) {
                        for (int k = 0; k < o.n && !rig.letters.held.isEmpty(); k++) {
                            for (CompletableFuture<Void> written : rig.letters.held.poll()) written.complete(null);
                        }
                    }
                    if (f != null) {
                        if (!f.isDone()) pending.put(i, f);
                        sb.append(",\"error\":").append(f.isDone() ? err(Rig.errorOf(f)) : "\"pending\"");
                        if (raw && f.isCompletedExceptionally()) sb.append(",\"message\":").append(Op.JSON.writeValueAsString(Rig.errorOf(f).getMessage()));
                    }
                } catch (RuntimeException e) {
                    sb.append(",\"threw\":").append(err(e));
                    if (raw) sb.append(",\"message\":").append(Op.JSON.writeValueAsString(String.valueOf(e.getMessage())));
                }
                if (!rig.letters.asked.isEmpty()) rig.letters.close();
                snapshot(sb, rig);
                if (raw) {
                    sb.append(",\"writes\":[");
                    String sep = "";
                    for (MemPersister.Write w : rig.persister.writes) {
                        sb.append(sep).append("{\"start_offset\":").append(w.startOffset()).append(",\"delivery_complete_count\":").append(w.deliveryComplete()).append(",\"batches\":[");
                        String s2 = "";
                        for (PersisterStateBatch b : w.batches()) {
                            sb.append(s2).append('[').append(b.firstOffset()).append(',').append(b.lastOffset()).append(',').append(b.deliveryState()).append(',').append(b.deliveryCount()).append(']');
                            s2 = ",";
                        }
                        sb.append("]}");
                        sep = ",";
                    }
                    sb.append("],\"timers\":").append(rig.timer.size());
                }
                out.println(sb.append('}'));
                if (live) out.flush();
            }
        }
        out.flush();
        if (rig != null) rig.close();
    }
}
