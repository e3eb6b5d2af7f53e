package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.server.share.persister.*;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.*;

/** Runs the combiner over many cases. */
final class Combine {
    private Combine() { }

    record Case(List<PersisterStateBatch> existing, List<PersisterStateBatch> fresh, long startOffset) { }

    static void combine(String file, int warmup, int runs) throws IOException {
        List<Case> cases = new ArrayList<>();
        try (BufferedReader r = Op.open(file)) {
            for (String s; (s = r.readLine()) != null; ) {
                if (s.isBlank()) continue;
                JsonNode j = Op.JSON.readTree(s);
                cases.add(new Case(Op.stateBatches(j.get("existing")), Op.stateBatches(j.get("new")), j.path("start_offset").asLong(-1)));
            }
        }
        PrintWriter out = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out), 1 << 16));
        long in = 0, outN = 0;
        for (Case c : cases) {
            List<PersisterStateBatch> res = new PersisterStateBatchCombiner(c.existing, c.fresh, c.startOffset).combineStateBatches();
            in += c.existing.size() + c.fresh.size();
            outN += res.size();
            StringBuilder sb = new StringBuilder("{\"combined\":[");
            String sep = "";
            for (PersisterStateBatch b : res) {
                sb.append(sep).append('[').append(b.firstOffset()).append(',').append(b.lastOffset()).append(',').append(b.deliveryState()).append(',').append(b.deliveryCount()).append(']');
                sep = ",";
            }
            out.println(sb.append("]}"));
        }
        out.flush();
        double[] ms = new double[runs], cpu = new double[runs];
        long sink = 0;
        for (int i = -warmup; i < runs; i++) {
            long c0 = Bench.cpu(), t0 = System.nanoTime();
            for (Case c : cases) sink += new PersisterStateBatchCombiner(c.existing, c.fresh, c.startOffset).combineStateBatches().size();
            if (i < 0) continue;
            ms[i] = (System.nanoTime() - t0) / 1e6;
            cpu[i] = (Bench.cpu() - c0) / 1e6;
        }
        if (runs > 0) {
            Map<String, Object> m = new LinkedHashMap<>();
            m.put("file", Path.of(file).getFileName().toString());
            m.put("combines", cases.size());
            m.put("input_batches", in);
            m.put("output_batches", outN);
            m.put("warmup", warmup);
            m.put("runs", runs);
            Bench.rates(m, "wall", ms, cases.size(), in);   // ops = combines, records = input batches
            Bench.rates(m, "cpu", cpu, cases.size(), in);
            m.put("sink", sink);
            System.err.println(Op.JSON.writeValueAsString(m));
        }
    }
}
