import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.io.DataInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;

/** Sends a record with each key of a file, and prints the partitions that they went to, on one line. */
public final class PartitionProbe {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "linger.ms", 20);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                var keys = new DataInputStream(Files.newInputStream(Path.of(args[2])))) {
            int count = keys.readInt();
            for (int i = 0; i < count; i++)
                sent.add(producer.send(new ProducerRecord<>(args[1], keys.readNBytes(keys.readInt()), null)));
            producer.flush();
            StringBuilder partitions = new StringBuilder("partitions");
            for (var each : sent)
                partitions.append(' ').append(each.get().partition());
            System.out.println(partitions);
        }
    }
}
