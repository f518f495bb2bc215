# The engine on pure cgroup2 and on Debian's own kernel, whatever the host has.
# It takes minutes where there is no KVM, so it is no part of `make test`.
VM_PACKAGES := qemu-system-x86 e2fsprogs kmod busybox-static
VM_TESTS    ?= .

.PHONY: test-cgroup2

test-cgroup2: build ## run the engine's tests on pure cgroup2, in a virtual machine with Debian's kernel
	@$(MAKE) deps PACKAGES='$(VM_PACKAGES)'
	@mkdir -p $(BUILD)/vm
	for suite in engine attack; do \
	  CGO_ENABLED=1 $(GO) test -c -tags osusergo,netgo -ldflags '-extldflags=-static' -o $(BUILD)/vm/$$suite.test ./test/$$suite; done
	CGO_ENABLED=0 $(GO) build -o $(BUILD)/vm/intruder ./test/attack/testdata/intruder
	test/vm/cgroup2.sh $(BUILD) '$(VM_TESTS)'
