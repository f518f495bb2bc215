# Tools for language models: the official clients of the Model Context Protocol call
# them. Python's comes from PyPI, TypeScript's and the inspector from npm.
TESTS    += test-mcp
PACKAGES += python3-venv

MCP_DIR  := test/mcp
MCP_VENV := $(BUILD)/mcp/venv
MCP_NODE := $(BUILD)/mcp/node

NEEDS    += $(MCP_VENV)/ready $(MCP_NODE)/ready

.PHONY: test-mcp

$(MCP_VENV)/ready: $(MCP_DIR)/requirements.txt
	@rm -rf $(MCP_VENV)
	python3 -m venv $(MCP_VENV)
	$(MCP_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Scripts of packages are not run: nothing is compiled.
$(MCP_NODE)/ready: $(MCP_DIR)/node/package-lock.json
	@mkdir -p $(@D)
	cp $(MCP_DIR)/node/package.json $< $(@D)/
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

test-mcp: root deps build deps-logs node-version $(MCP_VENV)/ready $(MCP_NODE)/ready ## run the tests of MCP with its official clients (needs root)
	PYTHONDONTWRITEBYTECODE=1 $(GO) run ./test/leak/around $(MCP_VENV)/bin/python -m unittest discover -s $(MCP_DIR) $(MCPTESTS)
