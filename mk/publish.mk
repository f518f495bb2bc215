# A copy of the tree under another module path.
PUBLISH    ?= $(CURDIR)/$(BUILD)/publish
FAST_TESTS := ./auth ./bench/... ./core/fault ./core/ids ./core/options ./test ./test/figures ./test/openapi

.PHONY: publish-as

publish-as: ## write a copy of the tree whose module is MODULE=host/path into build/publish, build it and run its fast tests
	mk/publish.sh '$(MODULE)' '$(PUBLISH)'
	cd '$(PUBLISH)' && $(GO) vet ./...
	env -u SANDBOX_HELPER_DIR $(MAKE) -C '$(PUBLISH)' programs $(BUILD)/libsandbox.so sandbox-logs
	cd '$(PUBLISH)' && $(GO) test $(FAST_TESTS)
	@echo 'the copy is in $(PUBLISH)'
