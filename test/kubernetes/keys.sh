#!/usr/bin/env bash
# Makes the keys, certificates and kubeconfigs of a cluster:
#
#   keys.sh DIR NODE ADDRESS     NODE's name and ADDRESS are in its certificate
#
# leaves them in DIR, which appears whole or not at all. They last for a year, and
# the administrator may do everything: they are for tests alone.
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: keys.sh DIR NODE ADDRESS" >&2; exit 1; }
keys=$1 node=$2 address=$3
[ ! -d "$keys" ] || exit 0

work=$(mktemp -d "$keys.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# quietly CMD... shows what CMD says only when it fails.
quietly() { "$@" 2>"$work/said" || { cat "$work/said" >&2; return 1; }; }

quietly openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj /CN=test -keyout ca.key -out ca.crt

# certificate NAME SUBJECT USE [NAMES] makes NAME.key and NAME.crt.
certificate() {
	quietly openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr"
	printf 'extendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}" >"$1.ext"
	quietly openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile "$1.ext" -out "$1.crt"
	rm "$1.csr" "$1.ext"
}

# kubeconfig NAME lets a program in as the owner of NAME.crt.
kubeconfig() {
	cat >"$1.conf" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: test, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $keys/ca.crt}}]
		users: [{name: $1, user: {client-certificate: $keys/$1.crt, client-key: $keys/$1.key}}]
		contexts: [{name: test, context: {cluster: test, user: $1}}]
		current-context: test
	END
}

service=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:10.96.0.1
certificate apiserver /CN=kube-apiserver serverAuth "IP:127.0.0.1,IP:$address,DNS:localhost,$service"
certificate apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
# The kubelet serves with its own: without the node's address in it, exec, logs and port-forward fail.
certificate kubelet "/O=system:nodes/CN=system:node:$node" clientAuth,serverAuth "IP:127.0.0.1,IP:$address,DNS:$node"
certificate admin /O=system:masters/CN=admin clientAuth
certificate controller-manager /CN=system:kube-controller-manager clientAuth
certificate scheduler /CN=system:kube-scheduler clientAuth
for name in admin kubelet controller-manager scheduler; do kubeconfig $name; done

quietly openssl ecparam -name prime256v1 -genkey -noout -out accounts.key
quietly openssl ec -in accounts.key -pubout -out accounts.pub
rm said ca.srl
mv "$work" "$keys"
