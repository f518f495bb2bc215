# The adapters for packages of agents. Their tests run in a virtual environment
# of their own that has these packages, pinned. It takes half a gigabyte and
# minutes to make, so `make test` leaves them out.
AGENTS      := bindings/python/tests/agents
AGENTS_VENV := $(BUILD)/python/agents

.PHONY: test-agents

# Made anew when the list of packages changes.
$(AGENTS_VENV)/ready: $(AGENTS)/requirements.txt
	@rm -rf $(AGENTS_VENV)
	python3 -m venv $(AGENTS_VENV)
	$(AGENTS_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

test-agents: root wheel $(AGENTS_VENV)/ready $(BUILD)/debian.tar ## run the tests of inspect_ai, deepagents and smolagents on boxes (needs root)
	$(AGENTS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall $(BUILD)/python/*.whl
	cd bindings/python && MYPYPATH=src '$(CURDIR)/$(AGENTS_VENV)/bin/mypy' --explicit-package-bases --disable-error-code import-untyped src/libsandbox/agents/*.py tests/agents/*.py examples/agents/*.py
	cd bindings/python && SANDBOX_BUILD='$(CURDIR)/$(BUILD)' '$(CURDIR)/$(AGENTS_VENV)/bin/python' -m pytest -q -p no:cacheprovider tests/agents $(PYTEST)
