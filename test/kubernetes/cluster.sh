#!/usr/bin/env bash
# A Kubernetes cluster of one node, for tests: the real programs, in namespaces of
# their own on this machine. Needs root and what build.sh, keys.sh and ./images make.
#
#   cluster.sh up            start one, always from nothing
#   cluster.sh in CMD...     run CMD in it: kubectl, ctr and the rest are in PATH
#   cluster.sh stop PART     kill a part of it (see daemon.sh)
#   cluster.sh start PART    start that part again, and wait for the API server
#   cluster.sh status        print what runs, with the memory it has
#   cluster.sh down          kill all that runs in it, and remove what it left
#
# KUBERNETES_DIR is the cluster's directory: several clusters are side by side where
# each has its own. KUBERNETES_BIN is that of the programs, KUBERNETES_IMAGES that of
# the images, which clusters may share.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
build=$(realpath -m "$here/../../build/kubernetes")
dir=$(realpath -m "${KUBERNETES_DIR:-$build/cluster}")
export KUBERNETES_BIN
KUBERNETES_BIN=$(realpath -m "${KUBERNETES_BIN:-$build/bin}")
images=$(realpath -m "${KUBERNETES_IMAGES:-$build/images}")

# What daemon.sh and node.sh read. run and the cgroup are there while the cluster is up.
export NODE=node1 NODE_ADDRESS=10.88.255.1
export RUN=$dir/run KEYS=$dir/keys LOGS=$dir/logs
CGROUP=sandbox-kubernetes-$(cksum <<<"$dir" | cut -d' ' -f1)
export CGROUP
export KUBECONFIG=$KEYS/admin.conf

die() { echo "cluster.sh: $*" >&2; exit 1; }

# is_up tells whether any process of the cluster is left: they all hold its lock.
is_up() { [ -e "$RUN/lock" ] && ! flock --nonblock "$RUN/lock" true; }

enter() {
	is_up || die "no cluster is up in $dir"
	exec nsenter --target "$(<"$RUN/pid")" --mount --net --pid --wdns="$PWD" \
		env PATH="$KUBERNETES_BIN:$PATH" KUBECACHEDIR="$RUN/kubectl" "$@"
}
inside() { (enter "$@"); }

# await SECONDS WHAT CMD... runs CMD until it succeeds. Nobody tells when the API
# server is there; who can tell, as `kubectl wait`, is asked once.
await() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until inside "$@" >/dev/null 2>"$RUN/await"; do
		[ $SECONDS -lt $end ] || die "$what is not ready: $(<"$RUN/await") (logs are in $LOGS)"
		sleep 0.05
	done
	printf '%6.2f s  %s\n' "$(bc <<<"$EPOCHREALTIME - $began")" "$what"
}

check() {
	local f
	[ "$(id -u)" = 0 ] || die "needs root"
	# The cluster has a /run and a /var of its own, and an overlay can't lie on another.
	case $dir/ in /run/* | /var/*) die "$dir: KUBERNETES_DIR must not be below /run or /var" ;; esac
	mkdir -p "$dir"
	[ "$(stat -f -c %T "$dir")" != overlayfs ] || die "$dir: KUBERNETES_DIR must not be on an overlay file system"
	[ -d /sys/fs/cgroup/cpuset ] || die "needs the hierarchies of cgroup v1: its settings for cgroup2 have not been tried"
	for f in kube-apiserver etcd containerd runc; do
		[ -x "$KUBERNETES_BIN/$f" ] || die "$KUBERNETES_BIN/$f is missing: make kubernetes"
	done
	[ -e "$images/pause.tar" ] || die "$images/pause.tar is missing: make kubernetes"
}

# The kubelet wants its root in each hierarchy, and processors in that of cpuset.
cgroups() {
	local hierarchy setting
	for hierarchy in /sys/fs/cgroup/*/; do
		[ "$hierarchy" = /sys/fs/cgroup/unified/ ] || mkdir -p "$hierarchy$CGROUP"
	done
	for setting in cpuset.cpus cpuset.mems; do
		cat "/sys/fs/cgroup/cpuset/$setting" >"/sys/fs/cgroup/cpuset/$CGROUP/$setting"
	done
}

configure() {
	local f
	mkdir -p "$RUN" "$LOGS"
	cp -r "$here/config" "$RUN/config"
	find "$RUN/config" -type f -exec sed -i \
		-e "s|@run@|$RUN|g; s|@keys@|$KEYS|g; s|@bin@|$KUBERNETES_BIN|g; s|@cgroup@|$CGROUP|g" {} +
}

up() {
	check
	is_up && die "a cluster is up in $dir (cluster.sh down)"
	clean # after a crash of the machine
	began=$EPOCHREALTIME
	"$here/keys.sh" "$KEYS" "$NODE" "$NODE_ADDRESS"
	configure
	cgroups
	# Everything in the cluster is below node.sh, its process 1: the kernel kills it all with that one.
	exec {lock}>"$RUN/lock"
	flock "$lock"
	read -r _ < <(exec setsid unshare --mount --net --pid --fork --propagation private \
		"$here/node.sh" 3>&1 </dev/null >"$LOGS/node.log" 2>&1) || die "the node did not start: $(<"$LOGS/node.log")"
	exec {lock}>&-

	local image
	ready
	for image in "$images"/*.tar; do
		await 60 "image $(basename "$image" .tar)" ctr --namespace k8s.io images import --local "$image"
	done
	await 60 "node" kubectl wait --for=condition=Ready "node/$NODE" --timeout=10s
	# Pods are refused until their service account is there.
	await 60 "service account" kubectl wait --for=create serviceaccount/default --timeout=10s
}

stop() { inside sh -c "kill -9 \$(cat '$RUN/${1:?PART is missing}.pid')"; }

start() {
	began=$EPOCHREALTIME
	# Without --fork nsenter would stop with a part that is stopped, and hold it when the cluster ends.
	inside setsid --fork "$here/daemon.sh" "${1:?PART is missing}" </dev/null >>"$LOGS/$1.log" 2>&1
	ready
}

ready() { await 60 "API server" kubectl get --raw /readyz; }

status() {
	# shellcheck disable=SC2016 # expanded inside
	inside sh -c 'for f in "$RUN"/*.pid; do
		printf "%-20s %s\n" "$(basename "$f" .pid)" "$(ps -o rss= -p "$(cat "$f")" | sed "s/[0-9]*/& kB/" || echo -)"
	done'
}

down() {
	if is_up; then
		kill -9 "$(<"$RUN/pid")"
		flock "$RUN/lock" true
	fi
	clean
}

clean() {
	find /sys/fs/cgroup/*/"$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
	rm -rf "$RUN"
}

command=${1:-}
shift || true
case $command in
in) enter "$@" ;;
up | stop | start | status | down) "$command" "$@" ;;
*) die "usage: cluster.sh up | in CMD... | stop PART | start PART | status | down" ;;
esac
