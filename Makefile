# `make` alone prints the targets. Parts of the project add theirs in mk/*.mk:
# a part appends its targets to BUILDS, NEEDS, TESTS, CHECKS or INSTALLS, and its
# Debian packages to PACKAGES.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-builtin-rules --no-print-directory

BUILD  := build
PREFIX ?= /usr/local
GO     ?= go

# Every run on the working tree uses the programs of that tree.
export SANDBOX_HELPER_DIR ?= $(CURDIR)/$(BUILD)

# Tools run at a pinned version and are never installed.
GOLANGCI := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

PACKAGES := gcc g++ libc6-dev python3 pkg-config mmdebstrap busybox-static e2fsprogs nftables zsh fish
BUILDS   := programs
NEEDS    := $(BUILD)/debian.tar
TESTS    := gotest
CHECKS   := format vet lint
INSTALLS := install-programs
-include mk/*.mk

.PHONY: help root deps build programs demo image test gotest race fuzz check format vet tidy clean-tree lint fmt docs install install-programs clean

help: ## print the targets
	@awk -F':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST) | sort

deps: ## install the Debian packages that are missing, naming them first
	@missing=; for p in $(PACKAGES); do \
	  dpkg-query -W -f='$${db:Status-Status}' $$p 2>/dev/null | grep -qx installed || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	echo "installing Debian packages:$$missing"; \
	root=; [ "$$(id -u)" = 0 ] || root=sudo; \
	$$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing

build: $(BUILDS) ## build the library, the command line and the programs behind it into build/

# Go's cache decides what is to be done. The shim is linked statically, so that
# it runs in whatever file system it finds; osusergo and netgo keep libc's
# loadable parts out of it.
programs:
	@mkdir -p $(BUILD)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BUILD)/sandbox-init ./cmd/sandbox-init
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BUILD)/sandbox-pod ./cmd/sandbox-pod
	CGO_ENABLED=1 $(GO) build -trimpath -tags osusergo,netgo -ldflags '-s -w -extldflags=-static' -o $(BUILD)/sandbox ./cmd/sandbox
	CGO_ENABLED=1 $(GO) build -trimpath -tags osusergo,netgo -ldflags '-s -w -extldflags=-static' -o $(BUILD)/sandbox-shim ./cmd/sandbox-shim

image: root deps $(BUILD)/debian.tar build ## make a small Debian image and import it as the alias "default" (needs root)
	$(BUILD)/sandbox --local images import default $(BUILD)/debian.tar

# Debian with bash and python3; made again when its recipe changes.
$(BUILD)/debian.tar: test/image/debian.sh
	@rm -f $@
	test/image/debian.sh $@

demo: root deps image examples ## from nothing to Python computing in a box, from C and from the command line (needs root)
	$(BUILD)/examples/hello
	$(BUILD)/sandbox --local run default -- python3 -c 'print("from the command line: 2**100 =", 2**100)'

# Boxes are made of mounts, cgroups and namespaces.
root:
	@[ "$$(id -u)" = 0 ] || { echo 'needs root: sudo env PATH="$$PATH" make $(MAKECMDGOALS)' >&2; exit 1; }

# What the tests need is fetched while Go compiles: three targets at a time, so that two
# processors have work while one target waits for the network. The parts of the tests run
# one after the other, as some measure how long a browser takes.
test: root deps ## run all tests (needs root)
	$(MAKE) -j3 build $(NEEDS)
	$(MAKE) $(TESTS)

# Tests with boxes wait more than they compute, so more of a package run at once than
# there are processors, and the packages that take longest begin first. The limit of time is
# that of go test for the suite of all surfaces, where the machine is busy with something
# else. go vet is a check of its own. The dependencies are compiled as those of the
# programs are, so that none is compiled a second time.
GOTESTPACKAGES ?= ./test/conformance ./test/engine ./test/attack/... ./test/... ./...
gotest:
	$(GO) test -trimpath -tags osusergo,netgo -parallel 4 -vet=off -timeout 25m $(GOTESTFLAGS) $(GOTESTPACKAGES)

race: root deps build ## run the Go tests under the race detector (needs root)
	$(MAKE) gotest GOTESTFLAGS=-race

FUZZTIME ?= 20s
fuzz: ## run every fuzz target for FUZZTIME (20s)
	@$(GO) list ./... | while read -r pkg; do \
	  $(GO) test -list '^Fuzz' $$pkg | { grep '^Fuzz' || true; } | while read -r target; do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; done; done

# The tests run once, without the race detector, under which they take more than
# twice as long: `make race` is for changes of what runs at the same time, and
# before a release. Measurements and generated requests (bench, soak, fuzz,
# fuzz-api, test-cgroup2) are left out too: they take from minutes to hours.
check: ## all that must hold before a change goes in, and what CI runs: format, vet, lint, spelling, scripts, subjects, bars, abi, tests, tidy tree
	$(MAKE) deps PACKAGES='$(PACKAGES) $(CHECK_PACKAGES)'
	$(MAKE) -j2 --output-sync=target $(CHECKS) tidy
	.ci/tests
	$(MAKE) clean-tree

format:
	@left=$$(gofmt -s -l $$(git ls-files '*.go')); [ -z "$$left" ] || { echo "not formatted (make fmt):"; echo "$$left"; exit 1; }

vet:
	$(GO) vet ./...

lint: ## run golangci-lint, at the pinned version
	$(GOLANGCI) run ./...

fmt: ## format the Go sources
	gofmt -s -w $$(git ls-files '*.go')

docs: ## rewrite the generated documents, and what documents quote
	$(GO) run ./bindings/generate
	$(GO) run ./httpd/e2b/protocol/generate httpd/e2b/protocol
	$(GO) test ./core/fault -run TestDocument -update
	$(GO) test ./logs/sql/check -run TestDocument -update
	$(GO) test ./test -run 'TestQuoted|TestContents' -update

tidy:
	$(GO) mod tidy -diff

clean-tree:
	@left=$$(git status --porcelain); [ -z "$$left" ] || { echo "the tree is not clean:"; echo "$$left"; exit 1; }

install: build $(INSTALLS) ## install under PREFIX (/usr/local), below DESTDIR when given

install-programs:
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/libexec/sandbox' '$(DESTDIR)$(PREFIX)/share/doc/sandbox'
	install -m 755 $(BUILD)/sandbox '$(DESTDIR)$(PREFIX)/bin/'
	install -m 755 $(BUILD)/sandbox-shim $(BUILD)/sandbox-init $(BUILD)/sandbox-pod '$(DESTDIR)$(PREFIX)/libexec/sandbox/'
	install -m 644 LICENSE NOTICE '$(DESTDIR)$(PREFIX)/share/doc/sandbox/'

clean: ## remove what the build made
	rm -rf $(BUILD)
