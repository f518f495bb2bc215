# Tools for language models: the official clients of the Model Context Protocol call
# them. Python's comes from PyPI, Node's and the inspector from npm, with the newer
# Node.js that the inspector needs.
TESTS    += test-mcp
PACKAGES += python3-venv

MCP_DIR  := test/mcp
MCP_VENV := $(BUILD)/mcp/venv

.PHONY: test-mcp

$(MCP_VENV)/ready: $(MCP_DIR)/requirements.txt
	@rm -rf $(MCP_VENV)
	python3 -m venv $(MCP_VENV)
	$(MCP_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

test-mcp: root deps build $(MCP_VENV)/ready ## run the tests of MCP with its official clients (needs root)
	PYTHONDONTWRITEBYTECODE=1 $(GO) run ./test/leak/around $(MCP_VENV)/bin/python -m unittest discover -s $(MCP_DIR) $(MCPTESTS)
