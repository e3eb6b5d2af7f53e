import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

import java.time.Duration;
import java.util.List;
import java.util.Properties;

/**
 * What only Java's share consumer can do so far: renew a lock, and ask for exactly so many records; and how long it
 * takes to join.
 * Prints a line per event; the Python test reads them.
 */
public final class ShareProbe {
    private static final Duration POLL = Duration.ofMillis(500);

    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("group.id", args[2]);
        settings.put("share.acknowledgement.mode", "explicit");
        switch (args[0]) {
            case "renew" -> renew(settings, args[3], Long.parseLong(args[4]));
            case "record-limit" -> recordLimit(settings, args[3], Integer.parseInt(args[4]), Integer.parseInt(args[5]));
            case "work" -> work(settings, args[3]);
            case "retry" -> retry(settings, args[3], Integer.parseInt(args[4]));
            case "trail" -> trail(settings, args[3]);
            case "values" -> values(settings, args[3], Integer.parseInt(args[4]));
            case "first" -> first(settings, args[3], Integer.parseInt(args[4]));
            case "due" -> due(settings, args[3], Integer.parseInt(args[4]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static KafkaShareConsumer<byte[], byte[]> open(Properties settings, String topic) {
        var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private static ConsumerRecords<byte[], byte[]> take(KafkaShareConsumer<byte[], byte[]> consumer) {
        for (int tries = 0; tries < 60; tries++) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
            if (!records.isEmpty()) return records;
        }
        throw new IllegalStateException("no record within 30 s");
    }

    /** Says when each record came, by a clock that other processes share, and accepts them. */
    private static void trail(Properties settings, String topic) {
        settings.put("max.poll.records", "10");
        try (var consumer = open(settings, topic)) {
            while (true) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    long now = System.nanoTime();
                    System.out.println("came " + now + " " + record.offset() + " " + record.deliveryCount().orElse((short) 1)
                        + " " + record.partition());
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
            }
        }
    }

    /** Accepts what comes until it has so many records; prints offset, key and value of each. */
    private static void values(Properties settings, String topic, int count) {
        try (var consumer = open(settings, topic)) {
            while (count > 0) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    System.out.println(record.offset() + " " + new String(record.key()) + " " + new String(record.value()));
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    count--;
                }
                consumer.commitSync();
            }
        }
    }

    private static volatile boolean ended;

    /** Accepts what comes until its input ends; says what came, and of which partitions that was answered. */
    private static void work(Properties settings, String topic) {
        settings.put("request.timeout.ms", "5000");
        settings.put("default.api.timeout.ms", "15000");
        var input = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (java.io.IOException e) {
                System.err.println(e);
            }
            ended = true;
        });
        input.setDaemon(true);
        input.start();
        try (var consumer = open(settings, topic)) {
            while (!ended) {
                var came = new StringBuilder("came");
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    came.append(' ').append(record.partition()).append(':').append(record.offset())
                        .append(':').append(record.deliveryCount().orElse((short) 1));
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                if (came.length() == 4) continue;
                System.out.println(came);
                var good = new StringBuilder("good");
                consumer.commitSync().forEach((partition, error) -> {
                    if (error.isEmpty()) good.append(' ').append(partition.partition());
                });
                System.out.println(good);
            }
        }
    }

    /** Holds the first record for `millis` by renewing its lock every third of its duration, then accepts it. */
    private static void renew(Properties settings, String topic, long millis) {
        try (var consumer = open(settings, topic)) {
            ConsumerRecord<byte[], byte[]> held = take(consumer).iterator().next();
            long lock = consumer.acquisitionLockTimeoutMs().orElseThrow();
            System.out.println("held " + held.offset() + " lock " + lock);
            long until = System.nanoTime() + millis * 1_000_000;
            while (System.nanoTime() < until) {
                consumer.acknowledge(held, AcknowledgeType.RENEW);
                report("renewed", consumer);
                // a poll hands renewed records back at once: it does not wait
                sleep(lock / 3);
                consumer.poll(Duration.ofMillis(1)).forEach(other -> { });
            }
            consumer.acknowledge(held, AcknowledgeType.ACCEPT);
            report("accepted", consumer);
        }
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void report(String what, KafkaShareConsumer<byte[], byte[]> consumer) {
        consumer.commitSync().forEach((partition, error) ->
            System.out.println(what + " " + error.map(Throwable::getClass).map(Class::getSimpleName).orElse("ok")));
    }

    /** Takes `total` records with at most `most` a poll, all of them in strict record_limit mode. */
    private static void recordLimit(Properties settings, String topic, int most, int total) {
        settings.put("share.acquire.mode", "record_limit");
        settings.put("max.poll.records", most);
        try (var consumer = open(settings, topic)) {
            for (int taken = 0; taken < total; ) {
                ConsumerRecords<byte[], byte[]> records = take(consumer);
                System.out.println("batch " + records.count());
                records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.ACCEPT));
                taken += records.count();
                consumer.commitSync().values().forEach(error -> error.ifPresent(e -> { throw e; }));
            }
        }
    }

    /** Releases a record so many times, then accepts it: milliseconds from each release to the next delivery. */
    private static void retry(Properties settings, String topic, int times) {
        try (var consumer = open(settings, topic)) {
            long released = 0;
            for (int left = times; left >= 0; left--) {
                ConsumerRecord<byte[], byte[]> record = take(consumer).iterator().next();
                if (released > 0) {
                    System.out.println("delivery " + record.deliveryCount().orElse((short) 1) + " after "
                        + (System.nanoTime() - released) / 1_000_000);
                }
                consumer.acknowledge(record, left > 0 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                released = System.nanoTime();
                consumer.commitSync().values().forEach(error -> error.ifPresent(e -> { throw e; }));
            }
        }
    }

    /** Accepts so many records: the delivery time in the header of each, and when it came. */
    private static void due(Properties settings, String topic, int count) {
        try (var consumer = open(settings, topic)) {
            while (count > 0) {
                for (var record : take(consumer)) {
                    var deliverAt = new String(record.headers().lastHeader("deliver-at").value());
                    System.out.println("due " + deliverAt + " came " + System.currentTimeMillis());
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    count--;
                }
            }
        }
    }

    /** One consumer after the other: milliseconds from subscribe to the first record, which goes back. */
    private static void first(Properties settings, String topic, int rounds) {
        for (int round = 0; round < rounds; round++) {
            long began = System.nanoTime();
            try (var consumer = open(settings, topic)) {
                take(consumer).forEach(record -> consumer.acknowledge(record, AcknowledgeType.RELEASE));
                System.out.println("first " + (System.nanoTime() - began) / 1_000_000);
            }
        }
    }
}
