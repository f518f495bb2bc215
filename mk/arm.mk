# What ships, for 64-bit Arm: the programs, and those unit tests that qemu-user can run.
#
# Left out are packages whose tests need calls that qemu-user does not emulate, as openat2
# and clone into namespaces (core/doctor, core/engine, core/hostpath, core/image, its
# layer), those that start themselves or programs of this tree anew, which takes binfmt_misc
# of the host (core/engine/guest, core/engine/process, core/filelock, logs/boxlog, metrics,
# spool, and those of the library, command line and daemon), and those that take minutes there
# (core/engine/link). libchdb is opened at run time and not linked, so it is not needed.
ARM_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
ARM_ENV      := GOARCH=arm64 CC=aarch64-linux-gnu-gcc
ARM_TESTS    ?= ./core ./core/build/... ./core/code ./core/document ./core/enginetest/fake ./core/fault ./core/feed ./core/ids \
  ./core/engine/{inits,kubernetes,record,rootless,transfer,wire} ./core/engine/shim/... ./core/image/gunzip ./core/local ./core/options \
  ./core/programs ./core/sockets ./core/store ./auth ./backend ./hostcopy ./httpd/{cursor,reference,share} ./logs/ingest \
  ./logs/sql/{ast,check,parse,print} ./mcp ./profile

.PHONY: test-arm64

test-arm64: ## build the programs for arm64 into build/arm64, and run the unit tests there that qemu-user can run
	@$(MAKE) deps PACKAGES='$(ARM_PACKAGES)'
	$(ARM_ENV) $(MAKE) programs sandbox-logs BUILD=$(BUILD)/arm64
	qemu-aarch64-static $(BUILD)/arm64/sandbox --version
	$(ARM_ENV) CGO_ENABLED=1 $(GO) vet ./core/engine/guest ./core/seccomp
	$(ARM_ENV) CGO_ENABLED=1 $(GO) test -vet=off -tags osusergo,netgo -exec 'qemu-aarch64-static -L /usr/aarch64-linux-gnu' $(ARM_TESTS)
