package kafka.server.share;

import java.io.IOException;
import java.util.*;

/** Drives the real SharePartition, PersisterStateBatchCombiner and ShareCoordinatorShard of the Kafka jars on the class path. See README.md. */
public final class Oracle {
    private Oracle() { }

    public static void main(String[] a) throws IOException {
        Map<String, Integer> n = new HashMap<>(Map.of("--runs", 5, "--warmup", 5));
        Set<String> flags = new HashSet<>();
        for (int i = 2; i < a.length; i++) {
            if (n.containsKey(a[i])) n.put(a[i], Integer.parseInt(a[++i]));
            else flags.add(a[i]);
        }
        switch (a.length < 2 ? "" : a[0]) {
            case "trace" -> Trace.trace(a[1], flags.contains("--raw"));
            case "bench" -> Bench.bench(a[1], n.get("--warmup"), n.get("--runs"), flags.contains("--heap"));
            case "combine" -> Combine.combine(a[1], n.get("--warmup"), n.get("--runs"));
            case "state" -> State.state(a[1]);
            default -> {
                System.err.println("usage: trace FILE [--raw] | bench FILE [--warmup W --runs N --heap] | combine FILE [--warmup W --runs N] | state FILE");
                System.exit(2);
            }
        }
    }
}
