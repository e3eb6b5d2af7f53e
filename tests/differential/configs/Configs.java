import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import kafka.server.KafkaConfig;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * What Apache Kafka says of settings, one set a line of JSON: {"scope": "broker", "topic" or "group",
 * "broker": {name: text}, "settings": {name: text}} to {"refused": why or null, "retention_ms": number}.
 */
public class Configs {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TypeReference<Map<String, String>> TEXTS = new TypeReference<>() { };
    private static final Map<String, String> BASE = Map.of(
        "process.roles", "broker,controller",
        "node.id", "1",
        "listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names", "CONTROLLER",
        "controller.quorum.bootstrap.servers", "localhost:9093",
        "log.dirs", "data");

    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            System.out.println(JSON.writeValueAsString(judge(JSON.readTree(line))));
    }

    private static Map<String, Object> judge(JsonNode asked) {
        Map<String, String> settings = JSON.convertValue(asked.get("settings"), TEXTS);
        Map<String, String> broker = new HashMap<>(BASE);
        broker.putAll(JSON.convertValue(asked.get("broker"), TEXTS));
        String scope = asked.get("scope").asText();
        if (scope.equals("broker"))
            broker.putAll(settings);
        Map<String, Object> answer = new HashMap<>();
        answer.put("refused", null);
        try {
            KafkaConfig config = new KafkaConfig(broker, false);
            if (scope.equals("topic"))
                LogConfig.validate(Map.of(), settings, config.extractLogConfigMap(), false);
            else if (scope.equals("group"))
                GroupConfig.validate(settings, config.groupCoordinatorConfig(), config.shareGroupConfig());
            answer.put("retention_ms", config.logRetentionTimeMillis());
        } catch (RuntimeException error) {
            answer.put("refused", error.getMessage() == null ? error.toString() : error.getMessage());
        }
        return answer;
    }
}
