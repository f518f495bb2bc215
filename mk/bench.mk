# Benchmarks beside other tools. Debian packages of the peers, and the runc
# whose figures the bars name, are only needed here.
BENCH_PACKAGES := bubblewrap crun podman containernetworking-plugins iptables busybox-static docker-registry mmdebstrap e2fsprogs gcc libc6-dev linux-perf xfsprogs
BENCH_RUNC     := v1.5.2
BENCH_FLAGS    ?=

.PHONY: bench bench-compare bench-draw bench-peers bench-programs profile

bench: build bench-programs $(BUILD)/bench/layer.tar.gz ## measure ours beside bwrap, crun, runc, podman and tar; table here, JSON in build/bench.json (needs root)
	$(GO) build -o $(BUILD)/bench/bench ./bench
	$(BUILD)/bench/bench -build $(BUILD) -json $(BUILD)/bench.json $(BENCH_FLAGS)

NEW ?= $(BUILD)/bench.json
bench-compare: ## print how the ratios of build/bench.json (NEW) differ from those of the earlier report OLD
	$(if $(OLD),,$(error name the earlier report: make bench-compare OLD=old.json))
	@$(GO) run ./bench -json $(NEW) -compare $(OLD)

bench-draw: ## draw docs/bench.svg from build/bench.json (NEW)
	$(GO) run ./bench -json $(NEW) -draw docs/bench.svg

# The programs have their symbols here. An init can't be read in its box, so it is
# sampled with the whole host.
profile: bench-programs ## profile creates with perf: a flame graph and a pprof profile in build/profile (needs root and make bench-peers)
	@mkdir -p $(BUILD)/profile/bench
	cp $(BUILD)/bench/text $(BUILD)/bench/tcp $(BUILD)/profile/bench
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BUILD)/profile/sandbox-init ./cmd/sandbox-init
	CGO_ENABLED=1 $(GO) build -trimpath -tags osusergo,netgo -ldflags '-extldflags=-static' -o $(BUILD)/profile/sandbox-shim ./cmd/sandbox-shim
	$(GO) run ./bench/profile -build $(BUILD)/profile -out $(BUILD)/profile

bench-peers: ## install what `make bench` compares with: bubblewrap, crun, podman and more from Debian; build runc into build/peers, and get E2B's SDK from PyPI
	@echo "runc $(BENCH_RUNC) goes into $(BUILD)/peers; nothing else is installed but these Debian packages: $(BENCH_PACKAGES)"
	@$(MAKE) deps PACKAGES='$(BENCH_PACKAGES)'
	@$(MAKE) $(E2B_VENV)/ready
	GOBIN=$(CURDIR)/$(BUILD)/peers $(GO) install github.com/opencontainers/runc@$(BENCH_RUNC)

# A layer of 69 MiB: the image of the tests with perl and git.
$(BUILD)/bench/layer.tar.gz: test/image/debian.sh
	@rm -f $@
	PACKAGES=bash,python3,usr-is-merged,perl,git test/image/debian.sh $@

bench-programs: $(BUILD)/bench/text $(BUILD)/bench/tcp $(BUILD)/bench/stream $(BUILD)/bench/hammer

$(BUILD)/bench/text $(BUILD)/bench/tcp: $(BUILD)/bench/%: bench/c/%.c
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -static -o $@ $<

$(BUILD)/bench/stream $(BUILD)/bench/hammer: $(BUILD)/bench/%: bench/c/%.c include/sandbox.h | $(BUILD)/libsandbox.so
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Iinclude -pthread -o $@ $< -L$(BUILD) -lsandbox -Wl,-rpath,'$$ORIGIN/..'
