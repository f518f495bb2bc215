# The engine on pure cgroup2 and on Debian's own kernels, and Debian's service and boxes
# without root under systemd, whatever the host has. It takes from minutes to hours where
# there is no KVM, so it is no part of `make test`.
# qemu-system-x86 brings the libraries: machine.sh takes the program from the backports.
VM_PACKAGES := qemu-system-x86 e2fsprogs kmod busybox-static
# Linux 6.1, and 6.12 of the backports.
VM_SUITES   ?= bookworm bookworm-backports
VM_TESTS    ?= .

.PHONY: test-cgroup2 test-systemd test-vm-programs

test-cgroup2: build test-vm-programs ## run the engine's tests on pure cgroup2, in virtual machines with the kernels of the VM_SUITES of Debian; VM_TESTS selects tests
	@failed=0; for suite in $(VM_SUITES); do test/vm/cgroup2.sh $(BUILD) $$suite '$(VM_TESTS)' || failed=1; done; exit $$failed

test-vm-programs:
	@$(MAKE) deps PACKAGES='$(VM_PACKAGES)'
	@mkdir -p $(BUILD)/vm
	for suite in engine attack; do \
	  CGO_ENABLED=1 $(GO) test -c -tags osusergo,netgo -ldflags '-extldflags=-static' -o $(BUILD)/vm/$$suite.test ./test/$$suite; done
	CGO_ENABLED=0 $(GO) build -o $(BUILD)/vm/intruder ./test/attack/testdata/intruder

test-systemd: root build test-vm-programs deb ## use the Debian package, and boxes without root, under systemd in virtual machines with the kernels of the VM_SUITES (needs root)
	CGO_ENABLED=1 $(GO) test -c -tags osusergo,netgo -ldflags '-extldflags=-static' -o $(BUILD)/vm/rootless.test ./test/rootless
	@failed=0; for suite in $(VM_SUITES); do test/vm/systemd.sh $(BUILD) $$suite '$(DEB)' || failed=1; done; exit $$failed
