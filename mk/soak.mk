# The product under load while it is killed, starved and damaged. SEED=n repeats
# the choices of a run that printed it; make test has the short form.
SECONDS ?= 300
SEED    ?= $(shell date +%s)

.PHONY: soak lifetimes

soak: root deps build deps-logs ## disturb boxes under load for SECONDS (300), by kills, shortages and damage; SEED=n repeats one (needs root)
	$(GO) test -count=1 -v -timeout 0 ./test/soak -seconds=$(SECONDS) -seed=$(SEED)

lifetimes: root deps build ## have 200 boxes end at their times, within 2 s, while their shim and the server are killed (needs root)
	SANDBOX_TEST_LIFETIMES=200 $(GO) test -count=1 -v ./test/daemon -run '^TestLifeTimes$$'
