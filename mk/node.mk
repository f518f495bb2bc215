# The package for Node.js, Deno and browsers. It needs Node.js 20 or newer with
# npm, which no Debian package of all releases has.
PACKAGES += chromium
TESTS    += test-node

NODE_DIR := bindings/node
NPM      := npm --prefix $(NODE_DIR) --no-audit --no-fund --no-update-notifier

NEEDS    += $(NODE_DIR)/node_modules/.package-lock.json

.PHONY: node node-version test-node node-pack conformance-node

node: node-version build $(NODE_DIR)/node_modules/.package-lock.json ## build the package for Node.js in bindings/node
	@mkdir -p $(NODE_DIR)/lib
	@for f in libsandbox.so sandbox-shim sandbox-init; do ln -sfn ../../../$(BUILD)/$$f $(NODE_DIR)/lib/$$f; done
	cd $(NODE_DIR) && rm -rf dist out && node_modules/.bin/tsc -p . && node_modules/.bin/tsc -p test

node-version:
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { echo 'needs Node.js 20 or newer with npm' >&2; exit 1; }

# Scripts of packages are not run: nothing is compiled.
$(NODE_DIR)/node_modules/.package-lock.json: $(NODE_DIR)/package-lock.json
	$(NPM) ci --ignore-scripts --loglevel=error
	@touch $@

# The time bounds each file as a whole, and is there for what hangs.
test-node: root deps node-pack $(BUILD)/debian.tar ## run the tests of the package for Node.js, in Chromium and Deno too (needs root)
	$(GO) run ./test/leak/around node --test --test-timeout=1800000 --test-reporter=spec $(NODE_DIR)/out/test/*.test.js

# The package carries the library and its programs, for linux-x64.
node-pack: node ## pack the package for Node.js into build/
	cd $(NODE_DIR) && rm -rf $(CURDIR)/$(BUILD)/node-package && mkdir $(CURDIR)/$(BUILD)/node-package \
	  && cp -rL package.json README.md dist lib $(CURDIR)/$(BUILD)/node-package/
	cp LICENSE NOTICE $(BUILD)/node-package/
	cd $(BUILD) && npm pack --silent ./node-package

conformance-node: node

.PHONY: bench-node cycles-node

ROUNDS ?= 30
bench-node: root node $(BUILD)/bench/stream $(BUILD)/bench/text ## measure execs and output from Node.js beside C, ROUNDS (30) rounds (needs root)
	node $(NODE_DIR)/out/bench/bench.js $(ROUNDS)

COUNT ?= 10000
cycles-node: root node ## make and remove COUNT (10,000) boxes from Node.js, and look at what is left (needs root)
	node --expose-gc --max-semi-space-size=1 $(NODE_DIR)/out/bench/cycles.js $(COUNT)
