package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchPartitionData;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;

/** One operation of a trace, with the record batches and acknowledgements that it needs already built. */
final class Op {
    int kind;
    String member;
    long startOffset, fetchOffset = -1, arg, records;
    int maxDelivery, maxInflight, lockMs, maxFetch, batchSize, n;
    boolean renewEnabled = true, deadLetters;
    List<PersisterStateBatch> state;
    ShareAcquireMode mode;
    FetchPartitionData data;
    List<ShareAcknowledgementBatch> acks;
    JsonNode json;

    static final String[] KINDS = {"init", "acquire", "ack", "release", "advance", "lso", "writes", "complete", "reload", "letters"};
    static final ObjectMapper JSON = new ObjectMapper();

    static List<PersisterStateBatch> stateBatches(JsonNode a) {
        List<PersisterStateBatch> out = new ArrayList<>();
        if (a != null) for (JsonNode b : a) {
            out.add(b.isArray()
                ? new PersisterStateBatch(b.get(0).asLong(), b.get(1).asLong(), (byte) b.get(2).asInt(), (short) b.get(3).asInt())
                : new PersisterStateBatch(b.get("first").asLong(), b.get("last").asLong(), (byte) b.get("state").asInt(), (short) b.get("delivery_count").asInt()));
        }
        return out;
    }

    /** One real v2 record batch per [first,last], holding a record at each end (what compaction leaves of a batch keeps its range). */
    static MemoryRecords records(JsonNode batches) {
        ByteBuffer buf = ByteBuffer.allocate(160 * Math.max(1, batches.size()));
        byte[] v = {1};
        for (JsonNode b : batches) {
            long first = b.get(0).asLong(), last = b.get(1).asLong();
            try (MemoryRecordsBuilder mb = MemoryRecords.builder(buf, Compression.NONE, TimestampType.CREATE_TIME, first)) {
                mb.appendWithOffset(first, 0L, null, v);
                if (last > first) mb.appendWithOffset(last, 0L, null, v);
            }
        }
        buf.flip();
        return MemoryRecords.readableRecords(buf);
    }

    static Op parse(String line) throws IOException {
        JsonNode j = JSON.readTree(line);
        Op o = new Op();
        o.json = j;
        o.kind = Arrays.asList(KINDS).indexOf(j.get("op").asText());
        o.member = j.path("member").asText(null);
        switch (o.kind) {
            case 0 -> {
                o.startOffset = j.path("start_offset").asLong(0);
                o.state = stateBatches(j.get("state_batches"));
                o.maxDelivery = j.path("max_delivery_count").asInt(5);
                o.maxInflight = j.path("max_inflight").asInt(2000);
                o.lockMs = j.path("lock_ms").asInt(30000);
                o.renewEnabled = j.path("renew_enabled").asBoolean(true);
                o.deadLetters = j.path("dead_letters").asBoolean(false);
            }
            case 1 -> {
                o.data = new FetchPartitionData(Errors.NONE, Long.MAX_VALUE, 0, records(j.get("batches")), Optional.empty(),
                    OptionalLong.empty(), Optional.empty(), OptionalInt.empty(), false);
                o.maxFetch = j.path("max_fetch_records").asInt(500);
                o.batchSize = j.path("batch_size").asInt(500);
                o.mode = ShareAcquireMode.of(j.path("mode").asText("batch_optimized"));
                o.fetchOffset = j.path("fetch_offset").asLong(-1);
            }
            case 2 -> {
                o.acks = new ArrayList<>();
                for (JsonNode b : j.get("batches")) {
                    List<Byte> t = new ArrayList<>();
                    for (JsonNode x : b.get("types")) t.add((byte) x.asInt());
                    o.acks.add(new ShareAcknowledgementBatch(b.get("first").asLong(), b.get("last").asLong(), t));
                    o.records += b.get("last").asLong() - b.get("first").asLong() + 1;
                }
            }
            case 3, 8 -> { }
            case 4 -> o.arg = j.get("ms").asLong();
            case 5 -> o.arg = j.get("offset").asLong();
            case 6 -> { o.arg = j.path("hold").asBoolean(false) ? 1 : 0; o.n = j.path("fail_next").asInt(0); o.maxFetch = j.path("error_code").asInt(-1); }
            case 7 -> { o.n = j.path("n").asInt(Integer.MAX_VALUE); o.maxFetch = j.path("error_code").asInt(0); }
            case 9 -> o.n = j.path("n").asInt(Integer.MAX_VALUE);
            default -> throw new IllegalArgumentException("unknown op: " + line);
        }
        return o;
    }

    static BufferedReader open(String file) throws IOException {
        return file.equals("-") ? new BufferedReader(new InputStreamReader(System.in)) : Files.newBufferedReader(Path.of(file));
    }

    static List<Op> load(String file) throws IOException {
        List<Op> ops = new ArrayList<>();
        try (BufferedReader r = open(file)) {
            for (String s; (s = r.readLine()) != null; ) if (!s.isBlank()) ops.add(parse(s));
        }
        return ops;
    }
}
