import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;

/** What Java's share consumer allows and refuses, step by step: a line each, `step: outcome`. */
public final class RulesProbe {
    private interface Step {
        Object run();
    }

    private static String bootstrap;
    private static String topic;

    public static void main(String[] args) {
        bootstrap = args[0];
        topic = args[1];
        explicit(args[2]);
        callback(args[3]);
        names(args[4]);
        renewed(args[5]);
        implicit(args[6]);
        settings();
        System.exit(0);
    }

    private static void tell(String step, Step run) {
        String outcome;
        try {
            outcome = String.valueOf(run.run());
        } catch (IllegalStateException e) {
            outcome = "refused";
        } catch (IllegalArgumentException e) {
            outcome = "argument";
        } catch (ApiException e) {
            outcome = Errors.forException(e).name();
        }
        System.out.println(step + ": " + outcome);
    }

    private static void tell(String step, Runnable run) {
        tell(step, () -> {
            run.run();
            return "ok";
        });
    }

    private static KafkaShareConsumer<byte[], byte[]> open(String group, String name) {
        return open(group, name, "explicit");
    }

    private static KafkaShareConsumer<byte[], byte[]> open(String group, String name, String mode) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", mode);
        var consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(name));
        return consumer;
    }

    private static List<ConsumerRecord<byte[], byte[]>> take(KafkaShareConsumer<byte[], byte[]> consumer) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int tries = 0; tries < 60 && records.isEmpty(); tries++)
            consumer.poll(Duration.ofMillis(500)).forEach(records::add);
        return records;
    }

    private static void poll(KafkaShareConsumer<byte[], byte[]> consumer) {
        consumer.poll(Duration.ofMillis(1));
    }

    private static void explicit(String group) {
        try (var consumer = open(group, topic)) {
            var records = take(consumer);
            for (var record : records)
                System.out.println("sizes: " + record.serializedKeySize() + " " + record.serializedValueSize());
            tell("poll with nothing acknowledged", () -> poll(consumer));
            consumer.acknowledge(records.get(0));
            tell("poll with one of three acknowledged", () -> poll(consumer));
            tell("commit with one of three acknowledged", () -> consumer.commitSync().size());
            tell("poll after that commit", () -> poll(consumer));
            consumer.acknowledge(records.get(1));
            consumer.acknowledge(records.get(2), AcknowledgeType.RENEW);
            tell("poll with one of three renewed", () -> poll(consumer));
            // a renewed record comes again, to be acknowledged or renewed anew
            take(consumer).forEach(record -> consumer.acknowledge(record, AcknowledgeType.RELEASE));
        }
    }

    private static String shown(Iterable<ConsumerRecord<byte[], byte[]>> records) {
        StringBuilder shown = new StringBuilder();
        for (var record : records)
            shown.append(record.offset()).append("x").append(record.deliveryCount().get()).append(" ");
        return shown.toString().strip();
    }

    private static void renewed(String group) {
        try (var consumer = open(group, topic)) {
            var records = take(consumer);
            records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.RENEW));
            tell("commit of what is renewed", () -> consumer.commitSync().size());
            tell("poll after renewal", () -> shown(take(consumer)));
            tell("poll with what was renewed not acknowledged", () -> poll(consumer));
            tell("acknowledge what was renewed", () -> records.forEach(consumer::acknowledge));
            tell("commit after renewal", () -> consumer.commitSync().size());
            tell("acknowledge again", () -> consumer.acknowledge(records.get(0)));
        }
    }

    private static void implicit(String group) {
        try (var consumer = open(group, topic, "implicit")) {
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (long until = System.nanoTime() + 20_000_000_000L; records.isEmpty() && System.nanoTime() < until;)
                consumer.poll(Duration.ZERO).forEach(records::add);
            System.out.println("polls without waiting: " + shown(records));
        }
        try (var consumer = open(group, topic, "implicit")) {
            System.out.println("after the end in implicit mode: " + shown(take(consumer)));
            tell("commit in implicit mode", () -> consumer.commitSync().size());
            tell("poll for -1 ms", () -> consumer.poll(Duration.ofMillis(-1)));
            tell("commit for -1 ms", () -> consumer.commitSync(Duration.ofMillis(-1)));
            tell("subscribe to null", () -> consumer.subscribe(null));
            tell("subscribe to blank", () -> consumer.subscribe(List.of(" ")));
            tell("close for -1 ms", () -> consumer.close(Duration.ofMillis(-1)));
        }
        try (var consumer = open(group, topic, "implicit")) {
            tell("after a commit in implicit mode", () -> shown(consumer.poll(Duration.ofSeconds(2))));
        }
    }

    private static void settings() {
        for (String name : new TreeSet<>(ConsumerConfig.configNames())) {
            Properties settings = new Properties();
            settings.put(name, "1");
            settings.put("bootstrap.servers", bootstrap);
            settings.put("group.id", "settings");
            boolean refused = false;
            try {
                new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                    .close(Duration.ZERO);
            } catch (RuntimeException e) {
                // whatever the value is; a value that cannot be has another message
                refused = String.valueOf(e.getMessage()).contains("cannot be set when using a share group");
            }
            System.out.println("setting " + name + ": " + (refused ? "refused" : "taken"));
        }
    }

    private static void callback(String group) {
        try (var consumer = open(group, topic)) {
            consumer.setAcknowledgementCommitCallback((offsets, error) -> {
                tell("in the callback, commit_sync", () -> consumer.commitSync().size());
                tell("in the callback, commit_async", consumer::commitAsync);
                tell("in the callback, poll", () -> poll(consumer));
                tell("in the callback, subscription", () -> consumer.subscription().size());
                tell("in the callback, subscribe", () -> consumer.subscribe(List.of(topic)));
                tell("in the callback, unsubscribe", consumer::unsubscribe);
                tell("in the callback, acquisition_lock_timeout_ms", () -> consumer.acquisitionLockTimeoutMs().isPresent());
                tell("in the callback, set callback", () -> consumer.setAcknowledgementCommitCallback(null));
                tell("in the callback, close", () -> consumer.close());
                tell("in the callback, acknowledge", () -> consumer.acknowledge(topic, 0, 0, AcknowledgeType.ACCEPT));
                tell("in the callback, metrics", () -> consumer.metrics().isEmpty());
                tell("in the callback, wakeup", consumer::wakeup);
            });
            take(consumer).forEach(consumer::acknowledge);
            consumer.commitSync();
        }
    }

    private static void names(String group) {
        for (String name : List.of("no topic", "..", "x".repeat(250))) {
            try (var consumer = open(group, name)) {
                tell("poll with an impossible name", () -> take(consumer).size());
                consumer.subscribe(List.of(topic));
                tell("poll with a good name", () -> {
                    var records = take(consumer);
                    records.forEach(record -> consumer.acknowledge(record, AcknowledgeType.RELEASE));
                    return !records.isEmpty();
                });
            }
        }
    }
}
