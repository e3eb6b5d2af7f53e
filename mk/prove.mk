##@ kills, attacks, the simulator, fuzzing, memory

tier: .venv/.installed .venv-test/.installed jars ## nodes in front of Apache Kafka 3.9.1: killed KILLS times (20); three before three brokers, and one before one, RECORDS (2,000,000), CONSUMERS (20), PAUSED_S (60), UPSTREAMS ("3.9.1 4.3.1")
	KILLS=$${KILLS:-20} $(PYTEST) -s tests/interop/tier tests/tier

queues: .venv/.installed .venv-test/.installed jars $(WIRE_JARS)/.done $(OLDEST_CLIENT_JARS)/.done $(SPRING_JARS)/.done build/go/client ## order, back-off and delivery times of Java's, Spring's, franz-go's and librdkafka's clients, on a broker and on three nodes that are killed, and a broker whose clock is set (8 minutes, takes Go)
	$(PYTEST) -s tests/queues $(ARGS)

tier-oldest: .venv/.installed .venv-test/.installed jars $(OLDEST_JARS)/.done ## nodes in front of Apache Kafka 2.6.3 with ZooKeeper, or of the jars in UPSTREAM_LIBS
	UPSTREAM_LIBS=$${UPSTREAM_LIBS:-$(CURDIR)/$(OLDEST_JARS)} $(PYTEST) tests/interop/tier tests/tier/test_letters.py tests/tier/test_operating.py

torture: .venv/.installed .venv-test/.installed ## kill the broker KILLS times (100) under load, fail its writes FAULTS times (100), audit what it answered
	SEED=$${SEED:-$$RANDOM} KILLS=$${KILLS:-100} FAULTS=$${FAULTS:-100} $(PYTEST) -s -m "long or not long" tests/interop/test_crash.py

bucket: .venv-bucket/.installed build/go/versitygw build/go/fake-gcs-server build/azurite/.installed ## buckets: a server that is wrong in one way at a time; versitygw, fake-gcs-server, Azurite, and a broker that is lost LOSSES times (3) with its disk (takes Go and Node)
	VERSITYGW=$(CURDIR)/build/go/versitygw FAKE_GCS_SERVER=$(CURDIR)/build/go/fake-gcs-server \
		AZURITE=$(CURDIR)/build/azurite/node_modules/.bin/azurite-blob SHARECORE=$(CURDIR)/.venv-bucket/bin/sharecore \
		.venv-bucket/bin/python -m pytest -s $(ARGS) tests/bucket

takeovers: .venv/.installed .venv-test/.installed ## kill the leader of a home KILLS times (100) and stop it STOPS times (10): how long nothing is answered, and what is lost (half an hour; ARGS="--url s3://...")
	$(BIN)/python -m tests.bucket.takeovers --kills $${KILLS:-100} --stops $${STOPS:-10} $(ARGS)

verify: .venv/.installed .venv-test/.installed jars $(WIRE_JARS)/.done ## sharecore verify on our broker, Apache Kafka 4.3.1 and 4.4.0, one and three tier nodes, a bucket with a standby, broken meanwhile: MINUTES (30) in all, SEED=, ARGS="--setup tier --each 5"
	$(BIN)/python -m tests.verify --minutes $${MINUTES:-30} $(if $(SEED),--seed $(SEED)) $(ARGS)

night: ## the same for six hours, 15 minutes a run
	@MINUTES=360 $(MAKE) verify ARGS="--each 15 --workers 32 $(ARGS)"

damage: .venv-test/.installed ## damage COUNT (2,000) copies of a data directory: the broker says so or has everything, and doctor agrees
	$(BIN)/python -m tests.damage --count $${COUNT:-2000} $(if $(SEED),--seed $(SEED)) $(ARGS)

abuse: .venv/.installed .venv-test/.installed ## attack a broker in every known way and hold what others pay against bounds (ARGS="--only budget --wait 1")
	$(BIN)/python -m tests.abuse $(ARGS)

simulate: .venv-test/.installed ## a whole broker in one deterministic loop: fresh seeds (SIMULATIONS=50 or SECONDS=60) and planted bugs, COMMIT= to draw the seeds from, or SEED= EVENTS= FAULTS= CANARY=; WORLD=tier for nodes in front of a cluster, WORLD=home for machines with a home in a bucket
	$(BIN)/python -m tests.simulation $(if $(WORLD),--world $(WORLD)) $(if $(SEED),--seed $(SEED)) $(if $(EVENTS),--events $(EVENTS)) \
		$(if $(SIMULATIONS),--simulations $(SIMULATIONS)) $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(COMMIT),--drawn-from $(COMMIT)) --faults "$(FAULTS)" --canary "$(CANARY)" $(ARGS)
	$(if $(SEED)$(CANARY)$(COMMIT),,$(BIN)/python -m tests.simulation $(if $(WORLD),--world $(WORLD)) --canary all)

# the release before: the newest tag, or FROM=any commit
FROM ?= $(shell git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null)
upgrade: .venv/.installed .venv-test/.installed ## forth and back between the release before and this one, killed in between (FROM=v1.2.3 or a commit)
	@.ci/need cargo
	@[ -n "$(FROM)" ] || { echo 'there is no release before this one: FROM=COMMIT names what to upgrade from' >&2; exit 1; }
	rm -rf build/upgrade && mkdir -p build/upgrade
	git archive "$(FROM)" | tar -x -m -C build/upgrade
	@# a target directory that two trees share mixes them up
	cd build/upgrade && CARGO_TARGET_DIR="$(CURDIR)/build/upgrade-target" "$(CURDIR)/.venv/bin/maturin" build --release --locked --out dist
	$(PYTHON) -m venv build/upgrade/.venv
	build/upgrade/.venv/bin/pip install -q "$$(echo build/upgrade/dist/sharecore-*.whl)[broker]"
	$(BIN)/python -m tests.upgrade build/upgrade/.venv/bin/sharecore $(SHARECORE) $(ARGS)

fuzz: SECONDS ?= 60
FUZZ_TARGETS := operations numbers combiner records messages typed share_state recovery
# what cargo-fuzz passes, but for its sanitizers: coverage that libFuzzer reads works on a stable compiler
FUZZ_FLAGS := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares

fuzz: build/fuzz/.done ## look for crashes with libFuzzer, SECONDS=60 a target (ARGS="operations records": only these)
	@for target in $(or $(ARGS),$(FUZZ_TARGETS)); do mkdir -p build/fuzz/corpus/$$target; \
		echo "$$target, $(SECONDS) s"; \
		build/fuzz/$$target -max_total_time=$(SECONDS) -max_len=4096 -rss_limit_mb=1024 -timeout=20 \
			-verbosity=0 -print_final_stats=1 -artifact_prefix=build/fuzz/$$target- build/fuzz/corpus/$$target; done

build/fuzz/.done: $(SOURCES) build/sources
	@.ci/need cargo cxx
	@mkdir -p $(@D)
	host=$$(rustc -vV | sed -n 's/^host: //p'); out="$${CARGO_TARGET_DIR:-target}/fuzz-build"; \
	RUSTFLAGS='$(FUZZ_FLAGS)' CARGO_TARGET_DIR="$$out" cargo build -q --locked --profile fuzz --target "$$host" \
		-p sharecore-fuzz --features libfuzzer --bins; \
	for target in $(FUZZ_TARGETS); do cp "$$out/$$host/fuzz/$$target" $(@D); done
	@touch $@

MEMCHECK := valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
memcheck: build/capi/.done ## the C example and the C ABI's tests under valgrind
	@.ci/need cargo valgrind
	cc -g -std=c11 -Ibuild/capi/include examples/c/queue.c build/capi/lib/libsharecore.so -o build/capi/queue
	$(MEMCHECK) build/capi/queue
	host=$$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_); \
	export "CARGO_TARGET_$${host}_RUNNER=$(MEMCHECK)"; \
	cargo test -q --locked -p sharecore-capi --lib --test abi --test managed

FREETHREADED ?= python3.14t
FREETHREADED_TESTS := tests/unit/test_partition_binding.py tests/unit/reference tests/unit/session tests/unit/storage \
	tests/unit/trace tests/differential/test_machine.py
freethreaded: .venv/.created ## the engine and the store on a CPython without the GIL (FREETHREADED=python3.14t)
	@.ci/need cargo
	@$(FREETHREADED) -c 'import sys; sys.exit(sys._is_gil_enabled())' 2>/dev/null || \
		{ echo 'FREETHREADED must name a CPython 3.14 or later that was built with --disable-gil' >&2; exit 1; }
	$(FREETHREADED) -m venv .venv-freethreaded
	rm -rf build/freethreaded
	.venv/bin/maturin build --release --locked --features testing --interpreter .venv-freethreaded/bin/python --out build/freethreaded
	.venv-freethreaded/bin/pip install -q --force-reinstall build/freethreaded/sharecore-*.whl hypothesis pytest pytest-timeout
	@# an extension that asks for the GIL has it switched on, with a warning
	.venv-freethreaded/bin/python -W error -c 'import sys, sharecore._core; sys.exit(sys._is_gil_enabled())'
	.venv-freethreaded/bin/python -m pytest -q -p no:cacheprovider $(FREETHREADED_TESTS) $(ARGS)
