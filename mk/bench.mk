# Benchmarks beside other tools. Debian packages of the peers, and the runc
# whose figures the bars name, are only needed here.
BENCH_PACKAGES := bubblewrap crun busybox-static gcc libc6-dev podman containernetworking-plugins iptables e2fsprogs
BENCH_RUNC     := v1.5.2
BENCH_FLAGS    ?=

.PHONY: bench bench-peers bench-programs

bench: build bench-programs ## measure ours beside bwrap, crun, runc and podman; table here, JSON in build/bench.json (needs root)
	$(GO) build -o $(BUILD)/bench/bench ./bench
	$(BUILD)/bench/bench -build $(BUILD) -json $(BUILD)/bench.json $(BENCH_FLAGS)

bench-peers: ## install what `make bench` compares with: bubblewrap, crun, podman, busybox from Debian; build runc into build/peers
	@echo "runc $(BENCH_RUNC) goes into $(BUILD)/peers; nothing else is installed but these Debian packages: $(BENCH_PACKAGES)"
	@$(MAKE) deps PACKAGES='$(BENCH_PACKAGES)'
	GOBIN=$(CURDIR)/$(BUILD)/peers $(GO) install github.com/opencontainers/runc@$(BENCH_RUNC)

bench-programs: $(BUILD)/bench/text $(BUILD)/bench/tcp $(BUILD)/bench/stream $(BUILD)/bench/hammer

$(BUILD)/bench/text $(BUILD)/bench/tcp: $(BUILD)/bench/%: bench/c/%.c
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -static -o $@ $<

$(BUILD)/bench/stream $(BUILD)/bench/hammer: $(BUILD)/bench/%: bench/c/%.c include/sandbox.h | $(BUILD)/libsandbox.so
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Iinclude -pthread -o $@ $< -L$(BUILD) -lsandbox -Wl,-rpath,'$$ORIGIN/..'
