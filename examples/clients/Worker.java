import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Worker {
    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", "workers",
            "share.acknowledgement.mode", "explicit");
        try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("jobs"));
            while (true) {
                for (var job : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(job.value());
                    consumer.acknowledge(job, AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
            }
        }
    }
}
