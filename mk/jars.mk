##@ Apache Kafka, from Maven Central

COPY_JARS := mvn -q -B -ntp org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies

# one after another: two Mavens do not write to one local repository
jars: $(KAFKA_JARS)/.done $(CLIENT_JARS)/.done $(WIRE_JARS)/.done $(UPSTREAM_JARS)/.done build/oracle/.done

$(KAFKA_JARS)/.done: tests/conformance/pom.xml
	@.ci/need java maven
	$(COPY_JARS) -f $< -DoutputDirectory=$(CURDIR)/$(@D)
	@$(PYTHON) tests/harness/share_classes.py $(@D)
	@touch $@

$(CLIENT_JARS)/.done: tests/interop/java/pom.xml | $(KAFKA_JARS)/.done
$(UPSTREAM_JARS)/.done: tests/interop/upstream/pom.xml | $(WIRE_JARS)/.done
$(OLDEST_JARS)/.done: tests/interop/upstream/oldest/pom.xml | $(UPSTREAM_JARS)/.done
$(WIRE_JARS)/.done: tests/differential/wire/pom.xml | $(CLIENT_JARS)/.done
$(SPARK_KAFKA_JARS)/.done: benches/spark/pom.xml
$(QUEUE_JARS)/.done: benches/queues/pom.xml | $(CLIENT_JARS)/.done
$(OLDEST_CLIENT_JARS)/.done: tests/queues/oldest/pom.xml | $(WIRE_JARS)/.done
$(SPRING_JARS)/.done: tests/clients/java/spring/pom.xml | $(OLDEST_CLIENT_JARS)/.done
$(CLIENT_JARS)/.done $(UPSTREAM_JARS)/.done $(OLDEST_JARS)/.done $(WIRE_JARS)/.done $(SPARK_KAFKA_JARS)/.done $(QUEUE_JARS)/.done $(OLDEST_CLIENT_JARS)/.done $(SPRING_JARS)/.done:
	@.ci/need java maven
	$(COPY_JARS) -f $< -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

build/oracle/.done: $(shell find tests/oracle -name '*.java' -o -name pom.xml) | $(CLIENT_JARS)/.done
	@.ci/need java maven
	tests/oracle/oracle.sh build
	@touch $@

jars-4.4.0: $(WIRE_JARS)/.done ## Apache Kafka 4.4.0's broker: make differential-wire ARGS="--kafka 4.4.0"
