##@ ours against Apache Kafka

differential: .venv-test/.installed ## the engine against the reference and Apache, fresh seeds (ARGS="--help")
	@.ci/need java maven
	$(BIN)/python -m tests.differential.run $(ARGS)

differential-state: .venv-test/.installed ## 160,000 operations on share state, ours against Apache's coordinator (ARGS="--help")
	@.ci/need java maven
	$(BIN)/python -m tests.differential.share_state --operations 160000 $(ARGS)

differential-access: .venv/.installed .venv-test/.installed jars ## who may do what: 19,000 requests of principals with and without each right, ours and a node against Apache (half an hour; ARGS="--help")
	@.ci/need java
	$(BIN)/python -m tests.differential.access $(ARGS)
	$(BIN)/python -m tests.differential.access --kinds apache node $(ARGS)

differential-telemetry: .venv/.installed .venv-test/.installed jars ## metrics of clients, ours against Apache Kafka 4.4.0 (a minute; `make test` has 4.3.1)
	KAFKA_LIBS=$(CURDIR)/$(WIRE_JARS) $(PYTEST) tests/differential/telemetry

differential-wire: .venv/.installed .venv-test/.installed jars ## 50,000 raw requests, ours against Apache Kafka's answers (ARGS="--help")
	$(BIN)/python -m tests.differential.wire $(ARGS)

differential-produce: .venv/.installed .venv-test/.installed jars ## batches that lie about themselves, every codec, ours against Apache Kafka's answers (half a minute; ARGS="--seed 7 --compression zstd")
	$(BIN)/python -m tests.differential.produce $(ARGS)

differential-compaction: .venv/.installed .venv-test/.installed jars jars-4.4.0 ## compacted logs, ours against Apache Kafka 4.3.1 and 4.4.0 (COMPACTION_SEEDS=5)
	COMPACTION_SEEDS=$${COMPACTION_SEEDS:-5} $(PYTEST) -m "long or not long" tests/interop/test_compaction.py
	KAFKA_LIBS=$(CURDIR)/$(WIRE_JARS) COMPACTION_SEEDS=$${COMPACTION_SEEDS:-5} $(PYTEST) -m "long or not long" tests/interop/test_compaction.py

differential-config: .venv-test/.installed jars jars-4.4.0 ## which settings a broker starts with, ours against Apache Kafka 4.3.1 and 4.4.0 (ARGS="--help")
	$(BIN)/python -m tests.differential.configs --kafka 4.3.1 $(ARGS)
	$(BIN)/python -m tests.differential.configs --kafka 4.4.0 $(ARGS)

differential-dlq: .venv/.installed .venv-test/.installed jars ## dead letters, ours against Apache Kafka 4.4.0: every cause, every state of the topic (minutes; ARGS="copies")
	@.ci/need java
	$(BIN)/python -m tests.differential.dlq $(ARGS)

assignors: .venv-test/.installed jars ## the assignors against Apache's own classes, fresh seeds (ARGS="--lives 500 simple")
	$(BIN)/python -m tests.differential.assignors $(ARGS)

compare-tools: .venv/.installed .venv-test/.installed jars ## Apache's tools for groups on sharecore and on Apache, outputs line by line
	$(BIN)/python -m tests.interop.tools $(ARGS)

conformance: .venv/.installed jars ## Apache's own tests and tools on sharecore (half an hour); writes docs/compatibility.md
	tests/conformance/all.sh

conformance-tier: .venv/.installed .venv-test/.installed jars ## Apache's own share-group tests on a node in front of Apache Kafka 3.9.1 (half an hour; ARGS="--upstream 4.3.1", "--nodes 3")
	$(BIN)/python -m tests.conformance.through $(ARGS)
