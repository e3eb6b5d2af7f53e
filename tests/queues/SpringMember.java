// Spring for Apache Kafka's container for share groups: BOOTSTRAP GROUP TOPIC. Says when each record came, by a clock that
// other processes share, and accepts it.
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.AcknowledgingShareConsumerAwareMessageListener;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.ShareKafkaMessageListenerContainer;
import org.springframework.kafka.support.ShareAcknowledgment;

public final class SpringMember {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "10");
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        var properties = new ContainerProperties(args[2]);
        properties.setShareAckMode(ContainerProperties.ShareAckMode.MANUAL);
        properties.setMessageListener(new AcknowledgingShareConsumerAwareMessageListener<byte[], byte[]>() {
            @Override
            public void onShareRecord(
                ConsumerRecord<byte[], byte[]> record, ShareAcknowledgment acknowledgment, ShareConsumer<?, ?> consumer) {
                System.out.println("came " + System.nanoTime() + " " + record.offset() + " "
                    + record.deliveryCount().orElse((short) 1) + " " + record.partition());
                acknowledgment.acknowledge();
            }
        });
        new ShareKafkaMessageListenerContainer<>(new DefaultShareConsumerFactory<byte[], byte[]>(settings), properties).start();
        Thread.currentThread().join();
    }
}
