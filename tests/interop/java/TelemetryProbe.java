import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.time.Duration;
import java.util.List;
import java.util.Properties;

/**
 * Java's clients as they come, which push metrics where they are asked to.
 * Arguments: bootstrap, topic and group. Prints instance ids, and works until it reads a line.
 */
public final class TelemetryProbe {
    private static final Duration WAIT = Duration.ofSeconds(20);

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        List<String> topics = List.of(args[1]);
        var bytes = new ByteArrayDeserializer();
        try (var producer = new KafkaProducer<>(
                settings(bootstrap, "java-producer", null), new ByteArraySerializer(), new ByteArraySerializer());
             var shared = new KafkaShareConsumer<>(settings(bootstrap, "java-share", args[2]), bytes, bytes);
             var plain = new KafkaConsumer<>(settings(bootstrap, "java-consumer", args[2] + "-plain"), bytes, bytes)) {
            shared.subscribe(topics);
            plain.subscribe(topics);
            System.out.println("java-producer " + producer.clientInstanceId(WAIT));
            System.out.println("java-share " + shared.clientInstanceId(WAIT));
            while (System.in.available() == 0) {
                producer.send(new ProducerRecord<>(args[1], new byte[100]));
                producer.flush();
                shared.poll(Duration.ofMillis(50));
                plain.poll(Duration.ofMillis(50));
            }
        }
        System.exit(0);
    }

    private static Properties settings(String bootstrap, String client, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", client);
        if (group != null) {
            settings.put("group.id", group);
        }
        return settings;
    }
}
