import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Java's consumers under measurement: share|parallel NAME=VALUE...
 *
 * <p>share: so many KafkaShareConsumers as there are workers, each in a thread of its own. parallel: Confluent's Parallel
 * Consumer in KEY order, with as many threads. Names and the trail: benches/queues/programs.py.
 */
public final class QueueClient {
    private final Map<String, String> named = new HashMap<>();
    private final AtomicInteger accepted = new AtomicInteger();
    private final AtomicInteger used = new AtomicInteger();
    private final int records, workUs, fails;
    private final long[] trail;
    private volatile long endNs = Long.MAX_VALUE;

    private QueueClient(String[] args) {
        for (int index = 1; index < args.length; index++) {
            String[] words = args[index].split("=", 2);
            named.put(words[0], words[1]);
        }
        records = number("records");
        workUs = number("work_us");
        fails = number("fails");
        trail = new long[4 * (records * (fails + 1) + number("spare"))];
    }

    public static void main(String[] args) throws Exception {
        var client = new QueueClient(args);
        if (args[0].equals("parallel"))
            client.parallel();
        else
            client.share();
        client.write();
        System.exit(0);
    }

    private int number(String name) {
        return Integer.parseInt(named.get(name));
    }

    private Properties settings() {
        var settings = new Properties();
        settings.put("bootstrap.servers", named.get("bootstrap"));
        settings.put("group.id", named.get("group"));
        settings.put("max.poll.records", named.get("poll"));
        return settings;
    }

    private List<String> topics() {
        return List.of(named.get("topics").split(","));
    }

    private void share() throws Exception {
        var threads = new ArrayList<Thread>();
        for (int worker = 0; worker < number("workers"); worker++) {
            var thread = new Thread(this::member);
            thread.start();
            threads.add(thread);
        }
        for (var thread : threads)
            thread.join();
    }

    private void member() {
        var settings = settings();
        settings.put("share.acknowledgement.mode", "explicit");
        try (var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(topics());
            while (!isOver())
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    int delivery = record.deliveryCount().orElse((short) 1);
                    work(record, delivery);
                    consumer.acknowledge(record, delivery > fails ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                }
        }
    }

    private void parallel() throws Exception {
        var settings = settings();
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        var options = ParallelConsumerOptions.<String, byte[]>builder()
            .ordering(ParallelConsumerOptions.ProcessingOrder.valueOf(named.get("order")))
            // 16 is its default
            .maxConcurrency(workUs > 0 ? number("workers") : 16)
            .retryDelayProvider(context -> Duration.ofSeconds(1L << (context.getNumberOfFailedAttempts() - 1)))
            // it compares keys by equals(), which arrays do not have
            .consumer(new KafkaConsumer<>(settings, new StringDeserializer(), new ByteArrayDeserializer()))
            .build();
        var processor = ParallelStreamProcessor.createEosStreamProcessor(options);
        processor.subscribe(topics());
        processor.poll(context -> {
            int delivery = context.getSingleRecord().getNumberOfFailedAttempts() + 1;
            work(context.getSingleConsumerRecord(), delivery);
            if (delivery <= fails)
                throw new IllegalStateException("this attempt fails");
        });
        while (!isOver())
            Thread.sleep(20);
        processor.closeDrainFirst(Duration.ofSeconds(20));
    }

    private boolean isOver() {
        return accepted.get() >= records || now() > endNs;
    }

    private void work(ConsumerRecord<?, byte[]> record, int delivery) {
        int row = used.getAndIncrement() * 4;
        if (row == 0)
            endNs = now() + number("seconds") * 1_000_000_000L;
        long began = now();
        if (workUs > 0)
            sleep(workUs);
        if (row + 4 <= trail.length) {
            trail[row] = ByteBuffer.wrap(record.value()).getLong();
            trail[row + 1] = began;
            trail[row + 3] = delivery;
            trail[row + 2] = now();
        }
        if (delivery > fails)
            accepted.incrementAndGet();
    }

    private static void sleep(int us) {
        long end = System.nanoTime() + us * 1_000L;
        for (long left = us * 1_000L; left > 0; left = end - System.nanoTime())
            java.util.concurrent.locks.LockSupport.parkNanos(left);
    }

    private static long now() {
        var now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    private void write() throws IOException {
        int length = Math.min(used.get() * 4, trail.length);
        try (var file = FileChannel.open(Path.of(named.get("trail")), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            var buffer = ByteBuffer.allocate(1 << 16);
            for (int index = 0; index < length; index++) {
                buffer.putLong(trail[index]);
                if (!buffer.hasRemaining() || index == length - 1) {
                    buffer.flip();
                    while (buffer.hasRemaining())
                        file.write(buffer);
                    buffer.clear();
                }
            }
        }
    }
}
