##@ the wheel, the environments, the C library

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
	.venv/bin/maturin build --release --locked --features testing --interpreter .venv/bin/python --out dist
	@echo dist/sharecore-*.whl > $@

# the wheel with S3, Google Cloud Storage and Azure as a bucket, which takes twice as long to build: `make test` does without
build/bucket/wheel: $(SOURCES) build/sources | .venv/.created
	@.ci/need cargo
	rm -rf $(@D) && mkdir -p $(@D)
	.venv/bin/maturin build --release --locked --features testing,bucket --interpreter .venv/bin/python --out $(@D)
	@echo $(@D)/sharecore-*.whl > $@

.venv-bucket/.installed: build/bucket/wheel build/requirements.txt
	@.ci/need python
	$(PYTHON) -m venv .venv-bucket
	.venv-bucket/bin/pip install -q --upgrade 'pip>=25.1'
	.venv-bucket/bin/pip install -q --group test -r build/requirements.txt
	.venv-bucket/bin/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	@touch $@

VERSITYGW := github.com/versity/versitygw/cmd/versitygw@v1.8.0
build/go/versitygw: mk/build.mk
	@.ci/need go
	GOBIN=$(CURDIR)/build/go go install $(VERSITYGW)
	@touch $@

FAKE_GCS := github.com/fsouza/fake-gcs-server@v1.56.1
build/go/fake-gcs-server: mk/build.mk
	@.ci/need go
	GOBIN=$(CURDIR)/build/go go install $(FAKE_GCS)
	@touch $@

AZURITE := azurite@3.35.0
build/azurite/.installed: mk/build.mk
	@.ci/need node
	mkdir -p $(@D)
	npm install --silent --no-audit --no-fund --prefix $(@D) $(AZURITE)
	@touch $@

# what the wheel needs, so that it is installed while the wheel is still compiled
build/requirements.txt: pyproject.toml
	@mkdir -p $(@D)
	@$(PYTHON) -c 'import tomllib; project = tomllib.load(open("$<", "rb"))["project"]; extras = project["optional-dependencies"]; \
		print(*project["dependencies"], *extras["broker"], *extras["page"], sep="\n")' > $@

.venv/.dependencies: build/requirements.txt | .venv/.created
	.venv/bin/pip install -q -r $<
	@touch $@

.venv/.installed: build/wheel .venv/.dependencies
	.venv/bin/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	@touch $@

.venv-test/.created: pyproject.toml build/requirements.txt
	@.ci/need python
	$(PYTHON) -m venv .venv-test
	$(BIN)/pip install -q --upgrade 'pip>=25.1'
	$(BIN)/pip install -q --group test -r build/requirements.txt
	@touch $@

.venv-test/.installed: build/wheel .venv-test/.created
	$(BIN)/pip install -q --force-reinstall --no-deps "$$(cat $<)"
	@touch $@

# an extension module that needs libpython cannot serve a program in C: a library of its own

capi: build/capi/.done ## build the C library and its header into build/capi/

build/capi/.done: $(filter rust/capi/% rust/engine/%,$(SOURCES)) Cargo.toml Cargo.lock build/sources
	@.ci/need cargo
	cargo build -q --release --locked -p sharecore-capi
	@# a new file: writing into one that a process has loaded would crash it
	@rm -rf $(@D)/lib; mkdir -p $(@D)/include $(@D)/lib
	cp rust/capi/include/sharecore.h $(@D)/include
	for library in "$${CARGO_TARGET_DIR:-target}"/release/libsharecore.{a,so,dylib}; do \
		[ ! -e "$$library" ] || cp "$$library" $(@D)/lib; done
	@touch $@

capi-header: ## write rust/capi/include/sharecore.h anew, from the crate's sources
	@.ci/need cargo
	SHARECORE_WRITE_HEADER=1 cargo test -q -p sharecore-capi --locked --features header --test header
