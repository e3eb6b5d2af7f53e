// A distributed worker of Kafka Connect, exactly once, whose MirrorMaker 2 copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.connect.cli.ConnectDistributed;

public class ConnectClient {
    private static final String BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter";

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], group = arguments[2];
        int port;
        try (var socket = new ServerSocket(0)) {
            port = socket.getLocalPort();
        }
        Map<String, String> worker = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrap, "group.id", group, "listeners", "http://127.0.0.1:" + port,
            "key.converter", BYTES, "value.converter", BYTES, "exactly.once.source.support", "enabled",
            "offset.flush.interval.ms", "500"));
        for (String store : new String[] {"config", "offset", "status"}) {
            worker.put(store + ".storage.topic", group + "-" + store);
            worker.put(store + ".storage.replication.factor", "1");
        }
        new ConnectDistributed().startConnect(worker);
        Map<String, String> mirror = Map.ofEntries(
            Map.entry("connector.class", "org.apache.kafka.connect.mirror.MirrorSourceConnector"),
            Map.entry("source.cluster.alias", "here"), Map.entry("target.cluster.alias", "there"),
            Map.entry("source.cluster.bootstrap.servers", bootstrap),
            Map.entry("target.cluster.bootstrap.servers", bootstrap),
            Map.entry("replication.policy.class", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
            Map.entry("topics", topic), Map.entry("sync.topic.configs.enabled", "false"),
            Map.entry("sync.topic.acls.enabled", "false"), Map.entry("offset-syncs.topic.replication.factor", "1"),
            Map.entry("exactly.once.support", "required"),
            Map.entry("source.consumer.isolation.level", "read_committed"),
            Map.entry("transforms", "rename"),
            Map.entry("transforms.rename.type", "org.apache.kafka.connect.transforms.RegexRouter"),
            Map.entry("transforms.rename.regex", ".*"), Map.entry("transforms.rename.replacement", topic + "-out"));
        String body = mirror.entrySet().stream()
            .map(each -> "\"" + each.getKey() + "\":\"" + each.getValue() + "\"").collect(Collectors.joining(",", "{", "}"));
        URI config = URI.create("http://127.0.0.1:" + port + "/connectors/" + topic + "/config");
        // a worker that has just joined says that it rebalances
        for (int status = 0; status / 100 != 2; Thread.sleep(500)) {
            var request = HttpRequest.newBuilder(config).header("Content-Type", "application/json")
                .PUT(HttpRequest.BodyPublishers.ofString(body)).build();
            var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
            status = answer.statusCode();
            System.out.println(status + " " + answer.body());
            if (status == 400)
                System.exit(1);
        }
        Thread.currentThread().join();
    }
}
