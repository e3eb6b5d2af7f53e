// A standalone worker of Kafka Connect: a sink writes TOPIC to a file, a source reads the file into TOPIC-out: BOOTSTRAP TOPIC GROUP
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.connect.cli.ConnectStandalone;

public class FileClient {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1];
        Path between = Path.of("between.txt").toAbsolutePath();
        if (!Files.exists(between))
            Files.createFile(between);
        String text = "org.apache.kafka.connect.storage.StringConverter";
        write("worker", """
            bootstrap.servers=%s
            listeners=http://127.0.0.1:0
            key.converter=%s
            value.converter=%s
            offset.storage.file.filename=%s
            offset.flush.interval.ms=500
            consumer.auto.offset.reset=earliest
            """.formatted(bootstrap, text, text, Path.of("offsets").toAbsolutePath()));
        write("sink", """
            name=%s-sink
            connector.class=org.apache.kafka.connect.file.FileStreamSinkConnector
            topics=%s
            file=%s
            """.formatted(topic, topic, between));
        write("source", """
            name=%s-source
            connector.class=org.apache.kafka.connect.file.FileStreamSourceConnector
            topic=%s-out
            file=%s
            """.formatted(topic, topic, between));
        ConnectStandalone.main(new String[] {"worker.properties", "sink.properties", "source.properties"});
        Thread.currentThread().join();
    }

    private static void write(String name, String settings) throws Exception {
        Files.writeString(Path.of(name + ".properties"), settings);
    }
}
