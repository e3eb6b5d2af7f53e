import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;

/**
 * Reads records of __consumer_offsets as Apache Kafka reads them, and writes them again: {"key": hex, "value": hex or
 * null} to the same two, and beside them what the formatters of its tools would print of both.
 */
public class Records {
    public static void main(String[] none) throws Exception {
        ObjectMapper json = new ObjectMapper();
        HexFormat hex = HexFormat.of();
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        BufferedReader records = new BufferedReader(new InputStreamReader(System.in));
        for (String line = records.readLine(); line != null; line = records.readLine()) {
            JsonNode given = json.readTree(line);
            JsonNode value = given.get("value");
            CoordinatorRecord record = serde.deserialize(
                ByteBuffer.wrap(hex.parseHex(given.get("key").asText())),
                value.isNull() ? null : ByteBuffer.wrap(hex.parseHex(value.asText())));
            ObjectNode answer = json.createObjectNode();
            answer.put("key", hex.formatHex(serde.serializeKey(record)));
            answer.set("shownKey", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
            if (record.value() != null) {
                answer.put("value", hex.formatHex(serde.serializeValue(record)));
                answer.set("shownValue", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                    record.value().message(), record.value().version()));
            }
            System.out.println(json.writeValueAsString(answer));
        }
    }
}
