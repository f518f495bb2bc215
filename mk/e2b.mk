# E2B's SDKs, unmodified, with a daemon that answers them: Python's come from PyPI,
# JavaScript's from npm.
TESTS    += test-e2b
PACKAGES += python3-venv

E2B_DIR  := test/e2b
E2B_VENV := $(BUILD)/e2b/venv
E2B_NODE := $(BUILD)/e2b/node

NEEDS    += $(E2B_VENV)/ready $(E2B_NODE)/ready $(BUILD)/e2b/science.tar

.PHONY: test-e2b

$(E2B_VENV)/ready: $(E2B_DIR)/requirements.txt
	@rm -rf $(E2B_VENV)
	python3 -m venv $(E2B_VENV)
	$(E2B_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Scripts of packages are not run: nothing is compiled.
$(E2B_NODE)/ready: $(E2B_DIR)/node/package-lock.json
	@mkdir -p $(@D)
	cp $(E2B_DIR)/node/package.json $< $(@D)/
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

# The image of the tests with IPython, matplotlib and pandas of PyPI, where Debian's Python
# looks for what is not Debian's.
$(BUILD)/e2b/science.tar: $(BUILD)/debian.tar $(E2B_DIR)/science.txt $(E2B_VENV)/ready
	@rm -rf $(BUILD)/e2b/science $@
	@python=$$(tar -tf $< | sed -n 's,^\./usr/lib/\(python3\.[0-9]*\)/$$,\1,p') && \
	$(E2B_VENV)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --python-version $${python#python} \
	  --target $(BUILD)/e2b/science -r $(E2B_DIR)/science.txt && \
	cp $< $@.part && \
	tar --append --file $@.part --owner root:0 --group root:0 --transform "s,^\.,./usr/local/lib/$$python/dist-packages," -C $(BUILD)/e2b/science .
	@mv $@.part $@

test-e2b: root deps build node-version $(BUILD)/debian.tar $(BUILD)/e2b/science.tar $(E2B_VENV)/ready $(E2B_NODE)/ready ## run the tests of E2B's SDKs (needs root)
	PYTHONDONTWRITEBYTECODE=1 $(GO) run ./test/leak/around $(E2B_VENV)/bin/python -m unittest discover -s $(E2B_DIR) $(E2BTESTS)
