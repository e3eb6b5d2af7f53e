import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Java's share consumer under measurement: MODE BOOTSTRAP GROUP TOPIC RECORDS, as benches/client/programs.py. */
public final class JavaClient {
    private static final Duration POLL = Duration.ofSeconds(1);

    public static void main(String[] args) {
        boolean batch = args[0].equals("batch");
        int wanted = Integer.parseInt(args[4]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("group.id", args[2]);
        settings.put("share.acknowledgement.mode", batch ? "implicit" : "explicit");
        long[] took = new long[wanted + 10_000];
        try (var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(args[3]));
            int seen = 0, first = 0;
            long began = 0, cpu = 0;
            while (seen < wanted) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                long now = System.nanoTime();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (args[0].equals("latency"))
                        took[seen] = now - Long.parseLong(new String(record.value()));
                    if (!batch)
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    seen++;
                }
                if (began == 0 && seen > 0) {
                    began = now;
                    cpu = cpuNanos();
                    first = seen;
                }
                if (!batch)
                    consumer.commitAsync();
            }
            consumer.commitSync();
            long elapsed = System.nanoTime() - began;
            if (args[0].equals("latency")) {
                int from = Math.min(seen / 5, wanted);
                long[] sorted = Arrays.copyOfRange(took, from, wanted);
                Arrays.sort(sorted);
                System.out.printf("{\"p50 ms\": %f, \"p99 ms\": %f}%n",
                    sorted[sorted.length / 2] / 1e6, sorted[sorted.length * 99 / 100] / 1e6);
            } else {
                System.out.printf("{\"records/s\": %f, \"CPU s a million\": %f}%n",
                    (seen - first) * 1e9 / elapsed, (cpuNanos() - cpu) / 1e3 / (seen - first));
            }
        }
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
