import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/** What Apache Kafka needs before it offers telemetry: takes what clients push if it can be read, and prints its names. */
public final class Receiver implements MetricsReporter, ClientTelemetry {
    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> {
            ByteBuffer data = payload.data();
            byte[] bytes = new byte[data.remaining()];
            data.get(bytes);
            try {
                MetricsData pushed = MetricsData.parseFrom(bytes);
                pushed.getResourceMetricsList().forEach(each -> each.getScopeMetricsList().forEach(scope ->
                    scope.getMetricsList().forEach(metric ->
                        System.out.println("pushed " + context.clientId() + " " + metric.getName()))));
            } catch (Exception e) {
                throw new IllegalArgumentException(e);
            }
        };
    }

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
