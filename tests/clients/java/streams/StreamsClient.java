// Kafka Streams, exactly once, with a state store, copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;

public class StreamsClient {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[2]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, "state-" + arguments[2]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put("auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        var text = Serdes.String();
        KStream<String, String> source =
            builder.stream(topic, org.apache.kafka.streams.kstream.Consumed.with(text, text));
        source.groupBy((key, value) -> value.substring(value.length() - 1), Grouped.with(text, text)).count();
        source.to(topic + "-out", org.apache.kafka.streams.kstream.Produced.with(text, text));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        Thread.currentThread().join();
    }
}
