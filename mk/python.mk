# The Python binding: its wheel and its tests. The wheel takes the version and the
# oldest system from what it carries. Tests run in a virtual environment with
# pinned packages from PyPI, where the wheel is installed.
TESTS    += test-python
PACKAGES += python3-venv

PYTHON      := bindings/python
PYTHON_VENV := $(BUILD)/python/venv

NEEDS    += $(PYTHON_VENV)/ready

.PHONY: wheel python-venv test-python conformance-python

wheel: $(PYTHON_VENV)/ready programs $(BUILD)/libsandbox.so ## build the Python wheel into build/python/
	@rm -f $(BUILD)/python/*.whl
	SANDBOX_BUILD='$(CURDIR)/$(BUILD)' $(PYTHON_VENV)/bin/pip wheel --quiet --no-deps --no-build-isolation -w $(BUILD)/python $(PYTHON)

# Made anew when the list of packages changes.
$(PYTHON_VENV)/ready: $(PYTHON)/requirements.txt
	@rm -rf $(PYTHON_VENV)
	python3 -m venv $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

python-venv: wheel
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall $(BUILD)/python/*.whl

conformance-python: python-venv

test-python: root python-venv $(BUILD)/debian.tar ## run the type checks, the linter and the tests of the Python binding (needs root)
	cd $(PYTHON) && '$(CURDIR)/$(PYTHON_VENV)/bin/mypy' && '$(CURDIR)/$(PYTHON_VENV)/bin/ruff' check --quiet && '$(CURDIR)/$(PYTHON_VENV)/bin/ruff' format --check --quiet .
	cd $(PYTHON) && SANDBOX_BUILD='$(CURDIR)/$(BUILD)' '$(CURDIR)/$(PYTHON_VENV)/bin/python' -m pytest -q -p no:cacheprovider $(PYTEST)

# Figures: Python beside C in one run, and what a long life leaves behind.
ROUNDS ?= 30
COUNT  ?= 10000

.PHONY: bench-python cycles-python

bench-python: root build python-venv bench-programs ## measure execs and output from Python beside C, ROUNDS (30) of each (needs root)
	SANDBOX_BUILD='$(CURDIR)/$(BUILD)' $(PYTHON_VENV)/bin/python $(PYTHON)/bench/overhead.py $(ROUNDS)

cycles-python: root build python-venv image ## make, use and remove COUNT (10000) boxes from one Python process (needs root)
	$(PYTHON_VENV)/bin/python $(PYTHON)/bench/cycles.py $(COUNT) default
