// Confluent's Parallel Consumer, with transactions, copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP
import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class ParallelClient {
    public static void main(String[] arguments) throws Exception {
        var consumer = new KafkaConsumer<>(
            Map.<String, Object>of(
                "bootstrap.servers", arguments[0], "group.id", arguments[2], "auto.offset.reset", "earliest",
                "enable.auto.commit", false, "isolation.level", "read_committed"),
            new StringDeserializer(), new StringDeserializer());
        var producer = new KafkaProducer<>(
            Map.<String, Object>of("bootstrap.servers", arguments[0], "transactional.id", arguments[2]),
            new StringSerializer(), new StringSerializer());
        var options = ParallelConsumerOptions.<String, String>builder()
            .ordering(ParallelConsumerOptions.ProcessingOrder.UNORDERED)
            .commitMode(ParallelConsumerOptions.CommitMode.PERIODIC_TRANSACTIONAL_PRODUCER)
            .commitInterval(Duration.ofMillis(200))
            .consumer(consumer).producer(producer).build();
        var processor = ParallelStreamProcessor.createEosStreamProcessor(options);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> processor.closeDrainFirst()));
        processor.subscribe(List.of(arguments[1]));
        processor.pollAndProduce(context -> new ProducerRecord<>(arguments[1] + "-out", context.key(), context.value()));
        Thread.currentThread().join();
    }
}
