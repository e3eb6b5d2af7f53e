// Spring for Apache Kafka, its container for share groups: BOOTSTRAP TOPIC GROUP COUNT. Each tenth record is released once.
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.AcknowledgingShareConsumerAwareMessageListener;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.ShareKafkaMessageListenerContainer;
import org.springframework.kafka.support.ShareAcknowledgment;

public class SpringShareClient {
    public static void main(String[] arguments) throws Exception {
        CountDownLatch accepted = new CountDownLatch(Integer.parseInt(arguments[3]));
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        ContainerProperties properties = new ContainerProperties(arguments[1]);
        properties.setShareAckMode(ContainerProperties.ShareAckMode.MANUAL);
        properties.setMessageListener(new AcknowledgingShareConsumerAwareMessageListener<String, String>() {
            @Override
            public void onShareRecord(
                ConsumerRecord<String, String> record, ShareAcknowledgment acknowledgment, ShareConsumer<?, ?> consumer) {
                if (Integer.parseInt(record.value()) % 10 == 0 && record.deliveryCount().orElse((short) 1) == 1) {
                    System.out.println("released " + record.value());
                    acknowledgment.release();
                } else {
                    System.out.println("consumed " + record.value());
                    acknowledgment.acknowledge();
                    accepted.countDown();
                }
            }
        });
        var container = new ShareKafkaMessageListenerContainer<String, String>(
            new DefaultShareConsumerFactory<>(settings), properties);
        container.start();
        boolean all = accepted.await(3, TimeUnit.MINUTES);
        Thread.sleep(1000);
        container.stop();
        System.exit(all ? 0 : 1);
    }
}
