# The web console: `make console` builds the page into console/dist, from where the
# daemon embeds it. That needs Node.js 20.19 or newer with npm, which no Debian
# package of all releases has; without it the daemon is built without the page.
PACKAGES += chromium
TESTS    += test-console

CONSOLE      := console/web
CONSOLE_NPM  := npm --prefix $(CONSOLE) --no-audit --no-fund --no-update-notifier
CONSOLE_NODE := const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)
CONSOLE_FROM := $(wildcard $(addprefix $(CONSOLE)/,index.html *.json *.ts src/* src/*/*)) bindings/node/src/contract.ts

.PHONY: console console-size console-same test-console

programs: console

console: ## build the page of the web console into console/dist
	@if node -e '$(CONSOLE_NODE)' 2>/dev/null; then $(MAKE) console/dist/index.html; \
	else echo 'the web console is left out: it needs Node.js 20.19 or newer with npm'; fi

console/dist/index.html: $(CONSOLE)/node_modules/.package-lock.json $(CONSOLE_FROM)
	@rm -rf console/dist/assets $@
	cd $(CONSOLE) && node_modules/.bin/tsc -p . && node_modules/.bin/vite build --logLevel warn

# Scripts of packages are not run: nothing is compiled.
$(CONSOLE)/node_modules/.package-lock.json: $(CONSOLE)/package-lock.json
	$(CONSOLE_NPM) ci --ignore-scripts --loglevel=error
	@touch $@

# What a browser may have to fetch in all, packed.
CONSOLE_MOST := 614400

console-size: console
	@size=0; for f in console/dist/index.html console/dist/assets/*; do size=$$((size + $$(gzip -9 -c "$$f" | wc -c))); done; \
	echo "the console has $$size bytes, packed with gzip"; [ $$size -le $(CONSOLE_MOST) ]

# The same sources give the same bytes.
console-same: console
	@rm -rf $(BUILD)/console-again
	cd $(CONSOLE) && node_modules/.bin/vite build --logLevel warn --outDir '$(CURDIR)/$(BUILD)/console-again'
	diff -r --exclude README.md console/dist $(BUILD)/console-again

# The time bounds each file as a whole, and is there for what hangs.
test-console: root deps build deps-logs console-size console-same ## run the tests of the web console in Chromium (needs root)
	cd $(CONSOLE) && rm -rf out && node_modules/.bin/tsc -p test
	CONSOLE_SHOTS='$(CURDIR)/$(BUILD)/console-shots' $(GO) run ./test/leak/around node --test --test-concurrency=1 --test-timeout=1800000 --test-reporter=spec $(CONSOLE)/out/*.test.js
