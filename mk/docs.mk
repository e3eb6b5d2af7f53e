##@ pages that are written from the code

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
