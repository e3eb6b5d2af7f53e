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
# what the next build could use again makes a build from nothing slower
export CARGO_INCREMENTAL ?= 0

SOURCES := $(sort $(shell find python rust -type f \( -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name '*.h' \
	-o -name '*.js' -o -name '*.css' -o -name '*.html' -o -name '*.svg' -o -name py.typed -o -name Cargo.toml \) -not -path '*/target/*')) Cargo.toml Cargo.lock pyproject.toml README.md LICENSE THIRD-PARTY.md
KAFKA_JARS := build/jars/kafka-4.3.1
CLIENT_JARS := build/jars/clients-4.4.0
OLDEST_CLIENT_JARS := build/jars/clients-4.2.2
SPRING_JARS := build/jars/spring-kafka
WIRE_JARS := build/jars/kafka-4.4.0
UPSTREAM_JARS := build/jars/kafka-3.9.1
OLDEST_JARS := build/jars/kafka-2.6.3
SPARK_KAFKA_JARS := build/jars/spark-kafka
QUEUE_JARS := build/jars/bench-queues
BIN := .venv-test/bin
export SHARECORE := $(CURDIR)/.venv/bin/sharecore
export KAFKA_LIBS := $(CURDIR)/$(KAFKA_JARS)
export CLIENT_LIBS := $(CURDIR)/$(CLIENT_JARS)
export ORACLE_WORK := $(CURDIR)/build/oracle
export LIBSHARECORE := $(CURDIR)/build/capi

help: ## list the targets
	@awk '/^##@ / { sub(/^##@ /, "\n# "); print } \
		match($$0, /^[a-z][a-z0-9.-]*:.*## /) { split($$0, line, /:.*## /); printf "%-24s%s\n", line[1], line[2] }' $(MAKEFILE_LIST)

serve: .venv/.installed ## run a broker on localhost:9092 with its data in ./data (more: make serve ARGS="--help")
	@exec .venv/bin/sharecore serve --data-dir data $(ARGS)

test: ## everything: lints, cargo test, pytest on the installed wheel
	@$(MAKE) --jobs=4 --output-sync=target testable lint rust-test compiled-tests
	@$(MAKE) pytest
	@echo "every check and test has passed"

unit: .venv-test/.installed ## quick tests only: unit and tidy, without those that start programs, work or wait long
	@unset PYTHONDONTWRITEBYTECODE; set -x; \
	$(PYTEST) --numprocesses=3 --dist=loadfile -m "not long and not process and not heavy" $(WITHOUT_BROKERS)

lint: lint-python lint-rust lint-stubs ## ruff, mypy, stubtest, import contract, rustfmt, clippy

fmt: .venv-test/.created ## format Python and Rust
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --all

build: .venv/.installed ## install what `make serve` runs

docs: .venv-docs/.created ## the documentation as a site, with llms.txt, into build/site; a broken link is an error
	.venv-docs/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html"

clean: ## remove what was built (data/ and Cargo's target directory stay)
	rm -rf .venv .venv-test .venv-spark .venv-page .venv-adapters .venv-bucket .venv-release .venv-docs .venv-tools .venv-audit build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks

include mk/build.mk mk/jars.mk mk/test.mk mk/docs.mk mk/compare.mk mk/prove.mk mk/bench.mk mk/release.mk

FORCE:
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(MAKEFILE_LIST)) jars testable compiled-tests pytest lint-python lint-rust lint-stubs FORCE
