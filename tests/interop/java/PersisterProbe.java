import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.ManualMetadataUpdater;
import org.apache.kafka.clients.MetadataRecoveryStrategy;
import org.apache.kafka.clients.NetworkClient;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.PlaintextChannelBuilder;
import org.apache.kafka.common.network.Selector;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.share.SharePartitionKey;
import org.apache.kafka.server.share.persister.DefaultStatePersister;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.GroupTopicPartitionData;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.PartitionAllData;
import org.apache.kafka.server.share.persister.PartitionErrorData;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionIdData;
import org.apache.kafka.server.share.persister.PartitionInfoData;
import org.apache.kafka.server.share.persister.PartitionStateSummaryData;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.PersisterStateManager;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ShareCoordinatorMetadataCacheHelper;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.SystemTimerReaper;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.IntFunction;

/**
 * Kafka's own persister as a client of a broker's share coordinator.
 *
 * <p>Arguments: host, port, group, topic id. Each line of standard input is an operation on some partitions at once, and
 * gives a line with the outcome of each, ascending:
 * <pre>
 * init 0,1,2 stateEpoch startOffset
 * write 0,1 stateEpoch leaderEpoch startOffset deliveryCompleteCount [first:last:state:count ...]
 * read 0 leaderEpoch
 * summary 0
 * delete 0
 * </pre>
 */
public final class PersisterProbe {
    private static final int TIMEOUT_MS = 30_000;

    public static void main(String[] args) {
        try {
            answer(args);
        } catch (Exception error) {
            error.printStackTrace();
            // the persister's threads would keep the process
            System.exit(1);
        }
    }

    private static void answer(String[] args) throws Exception {
        Node broker = new Node(0, args[0], Integer.parseInt(args[1]));
        Time time = Time.SYSTEM;
        Metrics metrics = new Metrics();
        LogContext log = new LogContext();
        var plaintext = new PlaintextChannelBuilder(null);
        plaintext.configure(Map.of());
        Selector selector = new Selector(TIMEOUT_MS, metrics, time, "probe", plaintext, log);
        NetworkClient client = new NetworkClient(selector, new ManualMetadataUpdater(), "probe", 100, 50, 1000,
            1 << 16, 1 << 16, TIMEOUT_MS, TIMEOUT_MS, TIMEOUT_MS, time, true, new ApiVersions(), log,
            MetadataRecoveryStrategy.NONE);
        var timer = new SystemTimerReaper("probe-reaper", new SystemTimer("probe"));
        var manager = new PersisterStateManager(client, new OneBroker(broker), time, timer);
        var probe = new PersisterProbe(new DefaultStatePersister(manager), args[2], Uuid.fromString(args[3]));
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(probe.run(line.split(" ")));
        }
        probe.persister.stop();
        timer.close();
        metrics.close();
    }

    /** Knows no coordinator, so that the persister has to ask for it. */
    private record OneBroker(Node node) implements ShareCoordinatorMetadataCacheHelper {
        @Override
        public boolean containsTopic(String topic) {
            return false;
        }

        @Override
        public Node getShareCoordinator(SharePartitionKey key, String topic) {
            return Node.noNode();
        }

        @Override
        public List<Node> getClusterNodes() {
            return List.of(node);
        }
    }

    private final DefaultStatePersister persister;
    private final String group;
    private final Uuid topicId;

    private PersisterProbe(DefaultStatePersister persister, String group, Uuid topicId) {
        this.persister = persister;
        this.group = group;
        this.topicId = topicId;
    }

    private String run(String[] words) throws Exception {
        List<Integer> partitions = new ArrayList<>();
        for (String number : words[1].split(",")) {
            partitions.add(Integer.parseInt(number));
        }
        return switch (words[0]) {
            case "init" -> {
                int epoch = Integer.parseInt(words[2]);
                long start = Long.parseLong(words[3]);
                yield outcomes(persister.initializeState(new InitializeShareGroupStateParameters.Builder()
                    .setGroupTopicPartitionData(data(partitions, p -> PartitionFactory.newPartitionStateData(p, epoch, start)))
                    .build()), result -> result.topicsData(), PersisterProbe::error);
            }
            case "write" -> {
                int stateEpoch = Integer.parseInt(words[2]);
                int leaderEpoch = Integer.parseInt(words[3]);
                long start = Long.parseLong(words[4]);
                int complete = Integer.parseInt(words[5]);
                List<PersisterStateBatch> batches = new ArrayList<>();
                for (int i = 6; i < words.length; i++) {
                    String[] fields = words[i].split(":");
                    batches.add(new PersisterStateBatch(Long.parseLong(fields[0]), Long.parseLong(fields[1]),
                        Byte.parseByte(fields[2]), Short.parseShort(fields[3])));
                }
                yield outcomes(persister.writeState(new WriteShareGroupStateParameters.Builder()
                    .setGroupTopicPartitionData(data(partitions, p -> PartitionFactory.newPartitionStateBatchData(
                        p, stateEpoch, start, complete, leaderEpoch, batches)))
                    .build()), result -> result.topicsData(), PersisterProbe::error);
            }
            case "read" -> {
                int leaderEpoch = Integer.parseInt(words[2]);
                yield outcomes(persister.readState(new ReadShareGroupStateParameters.Builder()
                    .setGroupTopicPartitionData(data(partitions, p -> PartitionFactory.newPartitionIdLeaderEpochData(p, leaderEpoch)))
                    .build()), result -> result.topicsData(), PersisterProbe::state);
            }
            case "summary" -> outcomes(persister.readSummary(new ReadShareGroupStateSummaryParameters.Builder()
                .setGroupTopicPartitionData(data(partitions, p -> PartitionFactory.newPartitionIdLeaderEpochData(p, 0)))
                .build()), result -> result.topicsData(), PersisterProbe::summary);
            case "delete" -> outcomes(persister.deleteState(new DeleteShareGroupStateParameters.Builder()
                .setGroupTopicPartitionData(data(partitions, PartitionFactory::newPartitionIdData))
                .build()), result -> result.topicsData(), PersisterProbe::error);
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private <P extends PartitionInfoData> GroupTopicPartitionData<P> data(List<Integer> partitions, IntFunction<P> each) {
        List<P> some = partitions.stream().map(each::apply).toList();
        return new GroupTopicPartitionData<>(group, List.of(new TopicData<>(topicId, some)));
    }

    private static <R, P extends PartitionInfoData & PartitionIdData> String outcomes(
        CompletableFuture<R> future, Function<R, List<TopicData<P>>> topics, Function<P, String> text
    ) throws Exception {
        List<P> found = new ArrayList<>();
        topics.apply(future.get(TIMEOUT_MS, TimeUnit.MILLISECONDS)).forEach(topic -> found.addAll(topic.partitions()));
        found.sort(Comparator.comparing(PartitionIdData::partition));
        return String.join(" | ", found.stream().map(each -> each.partition() + " " + text.apply(each)).toList());
    }

    private static String error(PartitionErrorData data) {
        return Errors.forCode(data.errorCode()).name();
    }

    private static String state(PartitionAllData data) {
        if (data.errorCode() != 0) return Errors.forCode(data.errorCode()).name();
        List<String> batches = data.stateBatches().stream()
            .map(b -> b.firstOffset() + ":" + b.lastOffset() + ":" + b.deliveryState() + ":" + b.deliveryCount()).toList();
        return ("epoch " + data.stateEpoch() + " start " + data.startOffset() + " " + String.join(" ", batches)).strip();
    }

    private static String summary(PartitionStateSummaryData data) {
        if (data.errorCode() != 0) return Errors.forCode(data.errorCode()).name();
        return "epochs " + data.stateEpoch() + " " + data.leaderEpoch() + " start " + data.startOffset()
            + " complete " + data.deliveryCompleteCount();
    }
}
