import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Apache Kafka's own assignors, one group a line of JSON: {"assignor": name, "topics": {number: partitions},
 * "members": [[id, instance id or null, [topic], {topic: [partition]}]]} to {id: {topic: [partition]}}.
 */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, PartitionAssignor> ASSIGNORS =
        Map.of("simple", new SimpleAssignor(), "uniform", new UniformAssignor(), "range", new RangeAssignor());

    private record Topics(Map<Uuid, Integer> partitions) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topic) {
            return partitions.getOrDefault(topic, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }

    public static void main(String[] none) throws Exception {
        BufferedReader groups = new BufferedReader(new InputStreamReader(System.in));
        for (String line = groups.readLine(); line != null; line = groups.readLine())
            System.out.println(JSON.writeValueAsString(assign(JSON.readTree(line))));
    }

    private static Uuid topic(String number) {
        return new Uuid(0, 100 + Long.parseLong(number));
    }

    private static Map<String, Map<Long, Set<Integer>>> assign(JsonNode group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").fields().forEachRemaining(each -> counts.put(topic(each.getKey()), each.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (JsonNode member : group.get("members")) {
            String id = member.get(0).asText();
            Set<Uuid> subscribed = new LinkedHashSet<>();
            member.get(2).forEach(number -> subscribed.add(topic(number.asText())));
            Map<Uuid, Set<Integer>> current = new LinkedHashMap<>();
            for (Iterator<Map.Entry<String, JsonNode>> held = member.get(3).fields(); held.hasNext();) {
                Map.Entry<String, JsonNode> each = held.next();
                Set<Integer> partitions = new LinkedHashSet<>();
                each.getValue().forEach(index -> partitions.add(index.asInt()));
                current.put(topic(each.getKey()), partitions);
                partitions.forEach(index -> owners.computeIfAbsent(topic(each.getKey()), x -> new HashMap<>()).put(index, id));
            }
            subscriptions.add(subscribed);
            Optional<String> instance = member.get(1).isNull() ? Optional.empty() : Optional.of(member.get(1).asText());
            members.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instance, subscribed, new Assignment(current)));
        }
        SubscriptionType type = subscriptions.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
        Map<String, MemberAssignment> target = ASSIGNORS.get(group.get("assignor").asText())
            .assign(new GroupSpecImpl(members, type, owners), new Topics(counts)).members();
        Map<String, Map<Long, Set<Integer>>> answer = new TreeMap<>();
        target.forEach((id, assignment) -> {
            Map<Long, Set<Integer>> held = new TreeMap<>();
            assignment.partitions().forEach((id2, partitions) -> {
                if (!partitions.isEmpty())
                    held.put(id2.getLeastSignificantBits() - 100, new TreeSet<>(partitions));
            });
            answer.put(id, held);
        });
        return answer;
    }
}
