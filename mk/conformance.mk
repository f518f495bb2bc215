# One suite on every surface: docs/CONTRACT.md, row by row.
.PHONY: conformance conformance-rootless test-spares

POOL ?= 0

# What drives the bindings: it is built before the suite, and by the suite itself only
# where that is run without make.
DRIVERS := conformance-cpp conformance-node conformance-python

gotest: build $(DRIVERS)

conformance: root deps build deps-logs $(DRIVERS) ## hold every surface to the contract, row by row, and print rows by surfaces; POOL=-1 makes boxes of spares (needs root)
	@rm -f $(BUILD)/conformance.txt
	@ended=0; $(GO) test -count=1 -timeout 30m ./test/conformance -args -pool $(POOL) -table $(CURDIR)/$(BUILD)/conformance.txt || ended=$$?; \
	  cat $(BUILD)/conformance.txt; exit $$ended

conformance-rootless: root deps build deps-logs $(DRIVERS) ## hold every surface to the contract as an ordinary user, but for what test/conformance/rootless.yaml lists (needs root, which makes that user)
	@rm -f $(BUILD)/conformance-rootless.txt
	@ended=0; $(GO) test -count=1 -timeout 30m -run TestConformance ./test/conformance -args -rootless -table $(CURDIR)/$(BUILD)/conformance-rootless.txt || ended=$$?; \
	  cat $(BUILD)/conformance-rootless.txt; exit $$ended

test-spares: root programs ## run the tests of the engine and the attacks with every box made of a spare (needs root)
	$(GO) test -count=1 -timeout 30m ./test/engine ./test/attack -args -pool -1
