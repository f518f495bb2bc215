# The log service: its engine is libchdb, which comes as an npm package. It is
# kept outside build/, so that neither `make clean` nor a fresh clone fetches it
# again.
BUILDS   += sandbox-logs
NEEDS    += deps-logs
INSTALLS += install-logs
PACKAGES += $(if $(shell command -v npm),,npm)

CHDB_VERSION      := 26.7.3-stable.1
CHDB_ARCH         := $(if $(filter aarch64,$(shell uname -m)),arm64,x64)
CHDB_SHA512_x64   := 5cff7b98caa7739b59a4a432c11f0dedc2d3b073624e61ebdf4a42e66ce8de35a6ba48ca9f62016bad1cd81fe059435cb858ce3235a8a2b408082a81563e70a7
CHDB_SHA512       ?= $(CHDB_SHA512_$(CHDB_ARCH))
CHDB_CACHE        ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sandbox/libchdb-$(CHDB_VERSION)-$(CHDB_ARCH)

.PHONY: deps-logs sandbox-logs install-logs

# The tests of the logs ask the real engine.
gotest: deps-logs

# The child process of the embedded engine. It loads libchdb, which needs the C
# library of the system, so it can't be linked statically. The tags are those of the
# other programs, for which its dependencies are compiled already: it waits for them.
sandbox-logs: | programs
	@mkdir -p $(BUILD)
	CGO_ENABLED=1 $(GO) build -trimpath -tags osusergo,netgo -ldflags '-s -w' -o $(BUILD)/sandbox-logs ./cmd/sandbox-logs

deps-logs: ## fetch libchdb, the engine of the log service, into build/lib (about 150 MB, once)
	@mk/libchdb.sh @chdb/lib-linux-$(CHDB_ARCH)-gnu '$(CHDB_VERSION)' '$(CHDB_SHA512)' '$(CHDB_CACHE)'
	@mkdir -p $(BUILD)/lib
	@ln -sfn '$(CHDB_CACHE)/libchdb.so' $(BUILD)/lib/libchdb.so

install-logs: sandbox-logs
	install -d '$(DESTDIR)$(PREFIX)/libexec/sandbox' '$(DESTDIR)$(PREFIX)/lib/sandbox'
	install -m 755 $(BUILD)/sandbox-logs '$(DESTDIR)$(PREFIX)/libexec/sandbox/'
	@if [ -e $(BUILD)/lib/libchdb.so ]; then install -m 644 $(BUILD)/lib/libchdb.so '$(DESTDIR)$(PREFIX)/lib/sandbox/'; \
	else echo 'the log engine is not installed with it: make deps-logs fetches it'; fi

# The log service beside its own engine. ROWS=1000000 CROWD=10s makes it short.
ROWS  ?= 20000000
CROWD ?= 60s

.PHONY: bench-logs
bench-logs: build deps-logs ## measure the log service beside its engine, on ROWS (20 million) generated rows
	$(GO) run ./bench/logs -build $(BUILD) -rows $(ROWS) -crowd $(CROWD)
