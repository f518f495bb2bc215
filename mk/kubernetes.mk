# A cluster of one node for tests (test/kubernetes). Its programs are built from Go
# modules, which takes minutes once; another checkout's may be used by their paths.
KUBERNETES           := $(CURDIR)/$(BUILD)/kubernetes
KUBERNETES_BIN       ?= $(KUBERNETES)/bin
KUBERNETES_IMAGES    ?= $(KUBERNETES)/images
KUBERNETES_DIR       ?= $(KUBERNETES)/_cluster
KUBERNETES_PACKAGES  := containernetworking-plugins ipset iptables nftables iproute2 busybox-static gcc libc6-dev libseccomp-dev pkg-config openssl bc
KWOK_NODES           ?= 10

kubernetes-% test-kubernetes bench-kubernetes: export KUBERNETES_BIN := $(KUBERNETES_BIN)
kubernetes-% test-kubernetes bench-kubernetes: export KUBERNETES_IMAGES := $(KUBERNETES_IMAGES)
kubernetes-% test-kubernetes bench-kubernetes: export KUBERNETES_DIR := $(KUBERNETES_DIR)

.PHONY: kubernetes kubernetes-images kubernetes-up kubernetes-down kubernetes-features kubernetes-kwok kubernetes-agents

kubernetes: kubernetes-programs kubernetes-images ## build a Kubernetes of one node for tests into build/kubernetes (minutes, once)

kubernetes-programs:
	@$(MAKE) deps PACKAGES='$(KUBERNETES_PACKAGES)'
	test/kubernetes/build.sh '$(KUBERNETES_BIN)'

kubernetes-images: programs $(BUILD)/debian.tar ## write the images of the cluster's tests into build/kubernetes/images
	@mkdir -p '$(KUBERNETES)/bin' '$(KUBERNETES_IMAGES)'
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o '$(KUBERNETES)/bin/pause' ./test/kubernetes/images/pause
	$(GO) run ./test/kubernetes/images $(BUILD) '$(KUBERNETES_IMAGES)'

kubernetes-up: root ## start a cluster in KUBERNETES_DIR (build/kubernetes/_cluster; needs root)
	test/kubernetes/cluster.sh up

kubernetes-down: root ## stop the cluster, and remove all that it left
	test/kubernetes/cluster.sh down

kubernetes-features: root ## try what a cluster can do, and print it as a table
	test/kubernetes/cluster.sh in test/kubernetes/features.sh

kubernetes-kwok: root ## bring KWOK_NODES (10) fake nodes into the cluster
	test/kubernetes/build.sh '$(KUBERNETES_BIN)' kwok
	test/kubernetes/cluster.sh start kwok
	test/kubernetes/cluster.sh in test/kubernetes/kwok.sh '$(KWOK_NODES)'

kubernetes-agents: root ## bring agent-sandbox into the cluster: its kinds, and its controller
	test/kubernetes/build.sh '$(KUBERNETES_BIN)' agents
	test/kubernetes/cluster.sh start agents
	test/kubernetes/cluster.sh in test/kubernetes/agents.sh

.PHONY: test-kubernetes
test-kubernetes: root deps ## test the engine whose boxes are pods in a cluster that is started and stopped for it (needs root)
	$(MAKE) kubernetes
	test/kubernetes/cluster.sh up
	trap 'test/kubernetes/cluster.sh down' EXIT; \
	  SANDBOX_TEST_ROOT='$(CURDIR)' test/kubernetes/cluster.sh in $(GO) test -count=1 -timeout 20m -tags kubernetes $(GOTESTFLAGS) -skip '^TestAgentSandbox' ./test/kubernetes/suite && \
	  $(MAKE) kubernetes-kwok && \
	  test/kubernetes/cluster.sh in $(GO) test -count=1 -v -run TestClaims -tags kubernetes $(GOTESTFLAGS) ./core/engine/kubernetes && \
	  $(MAKE) kubernetes-agents && \
	  SANDBOX_TEST_ROOT='$(CURDIR)' test/kubernetes/cluster.sh in $(GO) test -count=1 -tags kubernetes $(GOTESTFLAGS) -run '^TestAgentSandbox' ./test/kubernetes/suite

.PHONY: bench-kubernetes
bench-kubernetes: root deps programs ## measure boxes of a cluster beside kubectl and local boxes, ROUNDS (30) of each (needs root)
	$(MAKE) kubernetes
	test/kubernetes/cluster.sh up
	trap 'test/kubernetes/cluster.sh down' EXIT; export SANDBOX_TEST_REACH=direct; \
	  test/kubernetes/cluster.sh in $(GO) test -timeout 60m -tags kubernetes -run '^$$' -bench '^Benchmark(Claim|Cold|Echo|Output)$$' -benchtime $(ROUNDS)x ./test/kubernetes/suite && \
	  test/kubernetes/cluster.sh in $(GO) test -timeout 60m -tags kubernetes -run '^$$' -bench Cuts -benchtime 1x ./test/kubernetes/suite && \
	  $(MAKE) kubernetes-agents && \
	  test/kubernetes/cluster.sh in $(GO) test -timeout 60m -tags kubernetes -run '^$$' -bench AgentSandbox -benchtime $(ROUNDS)x ./test/kubernetes/suite
