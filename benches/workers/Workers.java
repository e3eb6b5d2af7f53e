import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;

/**
 * Many members of a share group, each of which works on one record at a time:
 * BOOTSTRAP GROUP TOPIC PARTITIONS WORKERS WORK_US POLL_RECORDS WARM_S SECONDS RATE
 *
 * With a rate it produces so many records a second itself, each with the moment it was sent; with 0 there is a backlog.
 */
public final class Workers {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final AtomicBoolean STOPPED = new AtomicBoolean(), MEASURES = new AtomicBoolean();
    private static final LongAdder HANDLED = new LongAdder(), BUSY_NANOS = new LongAdder(), AGAIN = new LongAdder();

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], group = args[1], topic = args[2];
        int partitions = Integer.parseInt(args[3]), workers = Integer.parseInt(args[4]);
        long workNanos = Long.parseLong(args[5]) * 1000;
        int warm = Integer.parseInt(args[7]), seconds = Integer.parseInt(args[8]), rate = Integer.parseInt(args[9]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("share.acquire.mode", "record_limit");
        settings.put("max.poll.records", args[6]);
        List<Worker> all = new ArrayList<>();
        for (int number = 0; number < workers; number++) {
            Worker worker = new Worker(settings, topic, workNanos);
            all.add(worker);
            worker.start();
        }
        Thread pacer = new Thread(() -> pace(bootstrap, topic, partitions, rate));
        if (rate > 0)
            pacer.start();
        Thread.sleep(warm * 1000L);
        say("begin");
        MEASURES.set(true);
        long began = System.nanoTime();
        Thread.sleep(seconds * 1000L);
        MEASURES.set(false);
        double took = (System.nanoTime() - began) / 1e9;
        say("end");
        double handled = HANDLED.sum() / took, busy = BUSY_NANOS.sum() / 1e9 / took / workers;
        STOPPED.set(true);
        for (Worker worker : all)
            worker.join(30_000);
        pacer.join(10_000);
        long[] latencies = all.stream().flatMapToLong(worker -> Arrays.stream(worker.latencies, 0, worker.known)).sorted().toArray();
        int count = latencies.length;
        System.out.printf("{\"records/s\": %f, \"busy\": %f, \"again\": %d, \"p50 ms\": %f, \"p99 ms\": %f}%n",
            handled, busy, AGAIN.sum(), count > 0 ? latencies[count / 2] / 1e6 : -1, count > 0 ? latencies[count * 99 / 100] / 1e6 : -1);
        System.exit(0);
    }

    private static void say(String word) {
        System.out.println(word);
        System.out.flush();
    }

    private static void pace(String bootstrap, String topic, int partitions, int rate) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("acks", "all");
        try (var producer = new KafkaProducer<>(settings, new LongSerializer(), new LongSerializer())) {
            long began = System.nanoTime();
            for (long number = 0; !STOPPED.get(); number++) {
                long due = began + number * 1_000_000_000L / rate;
                for (long left; (left = due - System.nanoTime()) > 0; )
                    LockSupport.parkNanos(left);
                producer.send(new ProducerRecord<>(topic, (int) (number % partitions), null, System.nanoTime()));
            }
        }
    }

    private static final class Worker extends Thread {
        private final Properties settings;
        private final String topic;
        private final long workNanos;
        private final Map<Integer, Map<Long, Long>> sent = new HashMap<>();
        long[] latencies = new long[1024];
        int known;

        Worker(Properties settings, String topic, long workNanos) {
            this.settings = settings;
            this.topic = topic;
            this.workNanos = workNanos;
        }

        @Override
        public void run() {
            try (var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new LongDeserializer())) {
                consumer.setAcknowledgementCommitCallback((offsets, error) -> {
                    if (error == null)
                        offsets.forEach(this::acknowledged);
                });
                consumer.subscribe(List.of(topic));
                while (!STOPPED.get())
                    for (ConsumerRecord<byte[], Long> record : consumer.poll(POLL))
                        work(consumer, record);
            }
        }

        private void work(KafkaShareConsumer<byte[], Long> consumer, ConsumerRecord<byte[], Long> record) {
            sent.computeIfAbsent(record.partition(), partition -> new HashMap<>()).put(record.offset(), record.value());
            long began = System.nanoTime(), until = began + workNanos;
            for (long left; (left = until - System.nanoTime()) > 0; )
                LockSupport.parkNanos(left);
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
            if (MEASURES.get()) {
                HANDLED.increment();
                BUSY_NANOS.add(System.nanoTime() - began);
                if (record.deliveryCount().orElse((short) 1) > 1)
                    AGAIN.increment();
            }
        }

        private void acknowledged(TopicIdPartition partition, Iterable<Long> offsets) {
            long now = System.nanoTime();
            Map<Long, Long> known = sent.getOrDefault(partition.partition(), Map.of());
            for (long offset : offsets) {
                Long at = known.remove(offset);
                if (at == null || !MEASURES.get())
                    continue;
                if (this.known == latencies.length)
                    latencies = Arrays.copyOf(latencies, latencies.length * 2);
                latencies[this.known++] = now - at;
            }
        }
    }
}
