import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What clients are told by a broker whose tables are full. A line "WHAT NAME [ARGUMENT]" comes in, a line "ok" or the class
 * and the message of the exception goes out.
 */
public class BoundsProbe {
    private static final String TOPIC = "t";
    private static final Duration WAIT = Duration.ofSeconds(20);
    private static final Map<String, Consumer<String, String>> open = new HashMap<>();
    private static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String answer = "ok";
            try {
                run(words[0], words[1], words.length > 2 ? words[2] : "");
            } catch (Exception error) {
                answer = error.getClass().getSimpleName() + " " + error.getMessage();
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
        open.values().forEach(each -> each.close());
    }

    private static void run(String what, String name, String argument) {
        switch (what) {
            case "join" -> {
                try (Consumer<String, String> consumer = consumer(name, argument)) {
                    join(consumer);
                }
            }
            case "stay" -> {
                open.put(name, consumer(name, argument));
                join(open.get(name));
            }
            case "still" -> join(open.get(name));
            case "share" -> {
                try (ShareConsumer<String, String> consumer = new KafkaShareConsumer<>(shared(name))) {
                    consumer.subscribe(List.of(TOPIC));
                    for (int times = 0; times < 10; times++) {
                        consumer.poll(Duration.ofMillis(300));
                    }
                }
            }
            case "commit" -> {
                try (Consumer<String, String> consumer = consumer(name, "classic")) {
                    TopicPartition partition = new TopicPartition(TOPIC, Integer.parseInt(argument));
                    consumer.unsubscribe();
                    consumer.assign(List.of(partition));
                    consumer.commitSync(Map.of(partition, new OffsetAndMetadata(1, "m".repeat(4000))), WAIT);
                }
            }
            case "transaction" -> {
                Properties properties = properties(name);
                properties.put("transactional.id", name);
                properties.put("key.serializer", StringSerializer.class.getName());
                properties.put("value.serializer", StringSerializer.class.getName());
                try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
                    producer.initTransactions();
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>(TOPIC, 0, null, name));
                    producer.commitTransaction();
                }
            }
            default -> throw new IllegalArgumentException(what);
        }
    }

    private static Consumer<String, String> consumer(String group, String protocol) {
        Properties properties = properties(group);
        properties.put("group.protocol", protocol);
        Consumer<String, String> consumer = new KafkaConsumer<>(properties);
        consumer.subscribe(List.of(TOPIC));
        return consumer;
    }

    private static void join(Consumer<String, String> consumer) {
        long end = System.nanoTime() + WAIT.toNanos();
        do {
            consumer.poll(Duration.ofMillis(100));
            if (System.nanoTime() > end) {
                throw new IllegalStateException("no partition was assigned");
            }
        } while (consumer.assignment().isEmpty());
    }

    private static Properties shared(String group) {
        Properties properties = properties(group);
        properties.remove("enable.auto.commit");
        return properties;
    }

    private static Properties properties(String group) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        properties.put("group.id", group);
        properties.put("enable.auto.commit", "false");
        properties.put("key.deserializer", StringDeserializer.class.getName());
        properties.put("value.deserializer", StringDeserializer.class.getName());
        return properties;
    }
}
