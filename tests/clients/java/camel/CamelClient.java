// Apache Camel, with manual commits, copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.kafka.KafkaConstants;
import org.apache.camel.component.kafka.consumer.KafkaManualCommit;
import org.apache.camel.main.Main;

public class CamelClient {
    public static void main(String[] arguments) throws Exception {
        Main main = new Main();
        main.configure().addRoutesBuilder(new RouteBuilder() {
            @Override
            public void configure() {
                String brokers = "?brokers=" + arguments[0];
                from("kafka:" + arguments[1] + brokers + "&groupId=" + arguments[2]
                    + "&autoOffsetReset=earliest&autoCommitEnable=false&allowManualCommit=true")
                    .removeHeader(KafkaConstants.TOPIC)
                    .to("kafka:" + arguments[1] + "-out" + brokers + "&requestRequiredAcks=all")
                    .process(exchange -> exchange.getIn()
                        .getHeader(KafkaConstants.MANUAL_COMMIT, KafkaManualCommit.class).commit());
            }
        });
        main.run();
    }
}
