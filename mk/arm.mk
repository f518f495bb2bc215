# The programs and the tests that make no boxes, for arm64 under qemu-user.
ARM_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
ARM_ENV      := GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc
# Packages whose tests make boxes, start programs of this host or engines, or need a kernel that
# qemu-user does not emulate (clone flags, user namespaces, seccomp).
ARM_SKIP     ?= ^sandbox/(bench|capi|test|core/engine/shim|core/engine$$|core/enginetest|logs/(embedded|sql$$|clickhouse))

.PHONY: test-arm64

test-arm64: ## build all for arm64, and run the unit tests there under qemu-user
	@$(MAKE) deps PACKAGES='$(ARM_PACKAGES)'
	$(ARM_ENV) $(GO) vet ./...
	$(ARM_ENV) $(GO) build -tags osusergo,netgo ./cmd/... ./capi
	$(ARM_ENV) $(GO) test -exec 'qemu-aarch64-static -L /usr/aarch64-linux-gnu' $$($(GO) list ./... | grep -vE '$(ARM_SKIP)')
