##@ figures

bench: .venv-test/.installed ## the engine in Rust, through Python, and Apache's class in the JVM (ARGS="--write": into docs/)
	@.ci/need cargo java maven
	$(BIN)/python -m benches.engine $(ARGS)

bench-calls: .venv-test/.installed ## hot calls of the engine from Python, with pytest-benchmark
	$(BIN)/python -m pytest benches/engine --benchmark-columns=median,iqr,rounds $(ARGS)

callgrind: .venv-test/.installed ## instructions of the engine's hot operations, against the record (ARGS=--record)
	@.ci/need cargo valgrind
	$(BIN)/python -m benches.engine.callgrind $(ARGS)

bench-broker: .venv/.installed jars ## the broker beside Apache Kafka 4.3.1 on this machine (ARGS="--records 200000 --only latency")
	.venv/bin/python -m benches.broker $(ARGS)

# a broker as it is installed: beside a test environment's packages it holds 11 MB of theirs
bench-tier bench-requests bench-workers bench-client bench-groups bench-dlq bench-cold bench-compaction bench-security bench-thinned bench-queues: \
	export SHARECORE ?= $(CURDIR)/.venv/bin/sharecore

bench-tier: .venv/.installed .venv-test/.installed jars ## one and three nodes in front of Apache Kafka beside that cluster, Apache's share groups and sharecore alone (ARGS="--records 200000", "--take-over": 10,000 share partitions, "--limited 0.1": nodes with a tenth of a CPU each, as root)
	$(BIN)/python -m benches.tier $(ARGS)

bench-requests: .venv/.installed .venv-test/.installed jars ## one record a request, beside Apache, NATS JetStream and Redis Streams (ARGS="--clients 20 --only share")
	@.ci/need cargo
	$(BIN)/python -m benches.requests $(ARGS)

bench-workers: .venv/.installed .venv-test/.installed jars ## many slow workers on four partitions, beside Apache Kafka 4.3.1 and 4.4.0: how busy they are, and how late records are (ARGS="--workers 100 --work 10 --rounds 1")
	$(BIN)/python -m benches.workers $(ARGS)

callgrind-requests: .venv-test/.installed ## instructions of a small request on the event loop (ARGS="--only produce-100")
	@.ci/need cargo valgrind
	$(BIN)/python -m benches.requests.instructions $(ARGS)

bench-client: .venv/.installed .venv-test/.installed jars ## our share consumer and producer beside confluent-kafka's and Java's (ARGS="--only batch"; ARGS="--records 10000 --workers OLD/python python": a worker's rate in two trees)
	$(BIN)/python -m benches.client $(ARGS)

bench-metrics: .venv/.installed ## what a scrape of 10,000 share partitions costs, a request, a round of the exporter over 100,000 and an open page (ARGS="--only exporter")
	.venv/bin/python -m benches.metrics $(ARGS)

bench-groups: .venv/.installed .venv-test/.installed jars ## 2,000 members in 20 groups over 1,000 partitions, beside Apache (ARGS="--groups 5")
	$(BIN)/python -m benches.groups $(ARGS)

bench-dlq: .venv/.installed .venv-test/.installed jars ## what dead letters cost, beside Apache Kafka 4.4.0 (ARGS="--records 100000")
	$(BIN)/python -m benches.dlq $(ARGS)

bench-thinned: .venv/.installed .venv-test/.installed ## bytes that answers carry for each byte wanted where ten keys have an order (ARGS="--codecs zstd --runs 1")
	$(BIN)/python -m benches.thinned $(ARGS)

bench-queues: .venv/.installed .venv-test/.installed jars $(QUEUE_JARS)/.done build/go/queue-rivals ## order by key, back-off, delivery times and weights, beside Parallel Consumer, NATS, Redis and RabbitMQ (half an hour, takes Go; ARGS="--records 20000 --only order")
	$(BIN)/python -m benches.queues $(ARGS)

bench-bucket: .venv-bucket/.installed build/go/versitygw jars ## a home in a bucket with the times of S3 beside NATS JetStream, Redis and Apache Kafka with replicas (half an hour, takes Go; ARGS="--kills 0 --clients 20 --brokers ...")
	@.ci/need cargo java
	VERSITYGW=$(CURDIR)/build/go/versitygw SHARECORE=$(CURDIR)/.venv-bucket/bin/sharecore \
		.venv-bucket/bin/python -m benches.bucket $(ARGS)

bench-bucket-day: .venv-test/.installed ## what an idle home costs: requests and objects of a simulated day, with and without a standby (a minute; ARGS="--hours 48")
	$(BIN)/python -m benches.bucket.day $(ARGS)

build/go/queue-rivals: $(wildcard benches/queues/rivals/*)
	@.ci/need go
	cd benches/queues/rivals && go build -o $(CURDIR)/$@ .

bench-cold: .venv/.installed .venv-test/.installed jars ## how long others wait while old records are read from the disk (ARGS="--megabytes 5000")
	$(BIN)/python -m benches.cold $(ARGS)

bench-compaction: .venv/.installed .venv-test/.installed jars ## log compaction beside Apache Kafka 4.3.1 (ARGS="--records 1000000 --keys 100000")
	$(BIN)/python -m benches.compaction $(ARGS)

bench-security: .venv/.installed .venv-test/.installed jars ## TLS and rights: what they cost, beside Apache Kafka 4.3.1 (ARGS="--only checks")
	$(BIN)/python -m benches.security $(ARGS)

bench-store: ## the store beside fjall 3: the table of docs/decisions/embedded-store.md
	@.ci/need cargo
	cargo run -q --release --locked --manifest-path benches/store/Cargo.toml

bench-state: .venv/.installed jars ## share state: acknowledgements beside Apache Kafka 4.3.1, recovery (ARGS="--only recovery")
	.venv/bin/python -m benches.state $(ARGS)

export SPARK_KAFKA_JARS

bench-spark: .venv/.installed .venv-spark/.installed jars $(SPARK_KAFKA_JARS)/.done ## the streaming source beside Spark's own, same topics, 2,000,000 records
	.venv-spark/bin/python -m benches.spark $(ARGS)

bench-spark-state: .venv-spark/.installed ## share state decoded, in Python, natively and in Spark (ARGS="--records 200000")
	.venv-spark/bin/python -m benches.spark.state $(ARGS)
