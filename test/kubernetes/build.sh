#!/usr/bin/env bash
# Builds the programs of a Kubernetes cluster from their Go modules, at pinned versions:
#
#   build.sh DIR [PART...]
#
# leaves them in DIR. PART is one of the functions below; without one all that a
# cluster needs is built. A part whose version is there already is kept. Needs
# Go and, for runc, a C compiler and Debian's libseccomp-dev.
set -euo pipefail

KUBERNETES=v1.36.3
ETCD=v3.6.8
CONTAINERD=v2.4.2
RUNC=v1.5.2
KUBE_ROUTER=v2.1.0
KWOK=v0.8.0
AGENT_SANDBOX=v0.5.6

die() { echo "build.sh: $*" >&2; exit 1; }

[ $# -ge 1 ] || die "usage: build.sh DIR [PART...]"
mkdir -p "$1"
bin=$(realpath "$1")
shift

# programs PART MODULE VERSION LINKED PACKAGE... builds the main packages of a
# module, with the linker's flags LINKED. They are the tools of a module of
# their own, so that nothing of them gets into the project's go.mod.
programs() {
	local part=$1 module=$2 version=$3 linked=$4 stamp="$bin/.$1-$3" work
	shift 4
	[ ! -e "$stamp" ] || return 0
	echo "building $part $version" >&2
	work=$(mktemp -d "$bin/$part.XXXXXX")
	pushd "$work" >/dev/null
	{
		printf 'module sandbox/%s\n\ngo 1.26.0\n\nrequire %s %s\n\n' "$part" "$module" "$version"
		printf "tool $module/%s\n" "$@" | sed 's,/$,,'
		replaced "$module" "$version"
	} >go.mod
	go mod tidy 2>go.log || { cat go.log >&2; die "can't resolve $module@$version"; }
	CGO_ENABLED=${CGO_ENABLED:-0} nice go build -trimpath -buildvcs=false -ldflags "-s -w $linked" -o "$bin/" tool
	popd >/dev/null
	rm -rf "$work" "$bin/.$part-"*
	touch "$stamp"
}

# replaced prints the replacements without which a module does not build. The
# go.mod of Kubernetes asks for its parts as ./staging/src/PART; the same parts
# are published as v0.MINOR.PATCH of its own v1.MINOR.PATCH.
replaced() {
	[ "$1" = k8s.io/kubernetes ] || return 0
	local theirs
	theirs=$(go mod download -json "$1@$2" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
	sed -n "/^replace (/,/^)/s,=> \./staging/src/\(.*\),=> \1 v0.${2#v1.},;/^replace (/,/^)/p" "$theirs"
}

kubernetes() {
	local is=k8s.io/component-base/version minor=${KUBERNETES#v1.}
	# Without these the programs call themselves v0.0.0, and refuse each other.
	programs kubernetes k8s.io/kubernetes $KUBERNETES \
		"-X $is.gitVersion=$KUBERNETES -X $is.gitMajor=1 -X $is.gitMinor=${minor%%.*} -X k8s.io/client-go/pkg/version.gitVersion=$KUBERNETES" \
		cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy,kubelet,kubectl}
}

etcd() {
	programs etcd go.etcd.io/etcd/server/v3 $ETCD "" ""
	[ ! -e "$bin/server" ] || mv "$bin/server" "$bin/etcd"
}

# containerd of Debian 12 is too old for user namespaces in pods and for image volumes.
containerd() {
	programs containerd github.com/containerd/containerd/v2 $CONTAINERD \
		"-X github.com/containerd/containerd/v2/version.Version=${CONTAINERD#v}" cmd/{containerd,containerd-shim-runc-v2,ctr}
}

# So is Debian's runc. Without libseccomp it could not load a pod's filter.
runc() {
	CGO_ENABLED=1 GOFLAGS=-tags=seccomp,netgo,osusergo programs runc github.com/opencontainers/runc $RUNC \
		"-X main.version=${RUNC#v} -extldflags=-static" ""
}

# The engine of network policies. It has the kernel filter with ipset, not with
# nftables' queue, which not every kernel has.
policies() {
	programs kube-router github.com/cloudnativelabs/kube-router/v2 $KUBE_ROUTER "" cmd/kube-router
}

kwok() {
	local module=sigs.k8s.io/kwok
	programs kwok $module $KWOK "" cmd/kwok
	# What fake nodes and their pods do, and when: kwok does nothing without it.
	mkdir -p "$bin/stages"
	(
		cd "$(go mod download -json "$module@$KWOK" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/kustomize/stage"
		install -m 644 -t "$bin/stages" node/fast/node-*.yaml node/heartbeat-with-lease/node-*.yaml pod/fast/pod-*.yaml
	)
}

# The controller of warm pools and claims, and its kinds. They convert between their
# versions by a service that is not run here: the tests use one version.
agents() {
	local module=sigs.k8s.io/agent-sandbox kind
	programs agents $module $AGENT_SANDBOX "" cmd/agent-sandbox-controller
	mkdir -p "$bin/agents"
	for kind in "$(go mod download -json "$module@$AGENT_SANDBOX" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')"/k8s/crds/*.yaml; do
		awk '/^  conversion:/ { skip = 1; next } skip && /^    / { next } { skip = 0; print }' "$kind" >"$bin/agents/${kind##*/}"
	done
}

[ $# -gt 0 ] || set -- kubernetes etcd containerd runc policies
for part; do
	case $part in
	kubernetes | etcd | containerd | runc | policies | kwok | agents) "$part" ;;
	*) die "$part: want kubernetes, etcd, containerd, runc, policies, kwok or agents" ;;
	esac
done
