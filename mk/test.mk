##@ parts of the tests, and tests that take more than `make test` needs

lint-python: .venv-test/.created
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd python && ../$(BIN)/lint-imports --config ../pyproject.toml --no-cache

lint-stubs: .venv-test/.installed
	$(BIN)/python -m mypy.stubtest sharecore._core

lint-rust:
	@.ci/need cargo clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# drawn cases are the same each time, so that no change fails for another's luck; PROPTEST_RNG_SEED= draws others
export PROPTEST_RNG_SEED ?= 20260

rust-test: ## the crates' own tests
	@.ci/need cargo
	@# make's job server cannot be reached from here; no crate has examples in its comments, which would take seconds each
	MAKEFLAGS= cargo test --workspace --exclude sharecore-binding --locked --lib --bins --tests

# tests with brokers wait more than they work, so there are more processes than cores
PROCESSES ?= 5
PYTEST = $(BIN)/python -m pytest $(ARGS)

testable: .venv/.installed .venv-test/.installed jars capi

# pytest rewrites the tests once, and keeps them: else each of its processes would, at the same time
compiled-tests: .venv-test/.installed
	@unset PYTHONDONTWRITEBYTECODE; $(BIN)/python -m pytest --collect-only -q tests > /dev/null

# each process imports the tests of its part: few for what works in memory, more for what waits for brokers
WITHOUT_BROKERS := tests/unit tests/tidy
pytest: testable
	@unset PYTHONDONTWRITEBYTECODE; status=0; set -x; \
	$(PYTEST) --numprocesses=4 --dist=loadfile $(WITHOUT_BROKERS) || status=1; \
	$(PYTEST) --numprocesses=$(PROCESSES) --dist=loadfile --no-loadscope-reorder $(WITHOUT_BROKERS:%=--ignore=%) tests \
		|| status=1; \
	exit $$status

long: testable ## the tests that `make test` leaves out for their time
	cargo test -q -p sharecore-capi --locked --features header --test header
	$(PYTEST) -m long --numprocesses=$(PROCESSES) --dist=loadfile tests

# each a CPython from 3.11 on, such as PYTHONS="python3.12 python3.14"
PYTHONS ?= $(PYTHON)
pythons: build/wheel .venv-test/.installed ## the wheel in an empty environment of each CPython in PYTHONS, with and without extras
	for each in $(PYTHONS); do "$$each" --version; \
		INSTALL_PYTHON="$$each" $(PYTEST) tests/packaging/test_install.py; done

pyright: .venv-test/.installed ## tests/typing, an application's types, in pyright's strict mode (takes npm)
	npx --yes pyright@$(PYRIGHT) --pythonpath $(abspath $(BIN))/python

interop: .venv/.installed .venv-test/.installed jars ## stock Kafka clients and tools against a running broker; our own client on Apache Kafka too
	CLIENT_BROKERS="sharecore apache" $(PYTEST) -m "long or not long" --numprocesses=$(PROCESSES) --dist=loadfile tests/interop

build/go/client: $(wildcard tests/interop/go/*.go tests/interop/go/go.*)
	@.ci/need go
	cd tests/interop/go && go build -o $(CURDIR)/$@ .

interop-go: .venv/.installed .venv-test/.installed jars build/go/client ## a client in Go, franz-go, over SASL_SSL, on a running broker and on Apache Kafka (takes Go)
	$(PYTEST) tests/interop/go tests/interop/test_thinned_answers.py

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

.venv-adapters/.installed: build/wheel pyproject.toml
	@.ci/need python
	$(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/pip install -q --upgrade 'pip>=25.1'
	.venv-adapters/bin/pip install -q --group test
	.venv-adapters/bin/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	.venv-adapters/bin/pip install -q "$$(cat $<)[taskiq,celery,dramatiq]"
	rm -rf build/kombu && mkdir -p build/kombu
	.venv-adapters/bin/pip download -q --no-deps --no-binary :all: -d build/kombu "kombu==$$(.venv-adapters/bin/python -c 'import kombu; print(kombu.__version__)')"
	tar -xzf build/kombu/kombu-*.tar.gz -C build/kombu --strip-components=1
	@touch $@

adapters: .venv/.installed .venv-adapters/.installed ## workers of job frameworks on a broker, killed under load (minutes)
	KOMBU_TESTS=$(CURDIR)/build/kombu/t/integration/common.py .venv-adapters/bin/python -m pytest $(ARGS) tests/adapters

adapters-apache: .venv-test/.installed .venv-adapters/.installed jars jars-4.4.0 ## the same workers on Apache Kafka 4.4.0 (ADAPTER_LIBS=FOLDER-WITH-JARS for another)
	@.ci/need java
	BROKER=apache KAFKA_LIBS=$${ADAPTER_LIBS:-$(CURDIR)/$(WIRE_JARS)} KOMBU_TESTS=$(CURDIR)/build/kombu/t/integration/common.py \
		.venv-adapters/bin/python -m pytest $(ARGS) tests/adapters

clients: .venv/.installed .venv-test/.installed jars ## clients of several ecosystems, the same programs on sharecore and on Apache Kafka (an hour; ARGS="-k sarama")
	@.ci/need java maven go node cargo cxx
	$(PYTEST) tests/clients

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
