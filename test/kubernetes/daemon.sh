#!/usr/bin/env bash
# Becomes a part of the cluster that it is started in (node.sh, cluster.sh start):
#
#   daemon.sh containerd|etcd|apiserver|controller-manager|scheduler|kubelet|proxy|policies|disks|kwok|agents
set -euo pipefail

part=$1
config=$RUN/config
echo $$ >"$RUN/$part.pid"
export PATH=$KUBERNETES_BIN:$PATH

# await CMD... waits for a part that this one gives up without.
await() { until "$@" >/dev/null 2>&1; do sleep 0.1; done; }
ready() { await kubectl get --raw /readyz; }

case $part in
containerd) exec containerd --config "$config/containerd.toml" ;;
etcd)
	# Nothing here has to survive the machine.
	exec etcd --name test --data-dir "$RUN/etcd" --unsafe-no-fsync \
		--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380
	;;
apiserver)
	exec kube-apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 \
		--advertise-address="$NODE_ADDRESS" --service-cluster-ip-range=10.96.0.0/24 \
		--cert-dir="$RUN/apiserver" --client-ca-file="$KEYS/ca.crt" \
		--tls-cert-file="$KEYS/apiserver.crt" --tls-private-key-file="$KEYS/apiserver.key" \
		--kubelet-client-certificate="$KEYS/apiserver-kubelet.crt" --kubelet-client-key="$KEYS/apiserver-kubelet.key" \
		--kubelet-certificate-authority="$KEYS/ca.crt" --kubelet-preferred-address-types=InternalIP,Hostname \
		--service-account-issuer=https://kubernetes.default.svc \
		--service-account-key-file="$KEYS/accounts.pub" --service-account-signing-key-file="$KEYS/accounts.key" \
		--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true
	;;
controller-manager | scheduler)
	ready
	own=$KEYS/$part.conf
	flags=()
	if [ "$part" = controller-manager ]; then
		flags=(--use-service-account-credentials=true --service-account-private-key-file="$KEYS/accounts.key"
			--root-ca-file="$KEYS/ca.crt" --flex-volume-plugin-dir="$RUN/plugins")
	fi
	exec "kube-$part" --kubeconfig="$own" --authentication-kubeconfig="$own" --authorization-kubeconfig="$own" \
		--bind-address=127.0.0.1 --leader-elect=false "${flags[@]}"
	;;
kubelet)
	await test -S /run/containerd/containerd.sock
	ready
	exec kubelet --config="$config/kubelet.yaml" --kubeconfig="$KEYS/kubelet.conf" \
		--node-ip="$NODE_ADDRESS" --hostname-override="$NODE" --root-dir=/var/lib/kubelet
	;;
proxy)
	ready
	exec kube-proxy --config="$config/proxy.yaml" --hostname-override="$NODE"
	;;
policies)
	await kubectl get node "$NODE"
	exec kube-router --kubeconfig="$KEYS/admin.conf" --hostname-override="$NODE" \
		--run-firewall --run-router=false --run-service-proxy=false --service-cluster-ip-range=10.96.0.0/24
	;;
disks)
	while ready; do "$(dirname "$0")/disks.sh" || true; done
	;;
kwok)
	stages=()
	for f in "$KUBERNETES_BIN"/stages/*.yaml; do stages+=(--config="$f"); done
	exec kwok --kubeconfig="$KEYS/admin.conf" --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake \
		--cidr=10.89.0.0/16 --node-ip=10.89.255.1 --node-lease-duration-seconds=40 "${stages[@]}"
	;;
agents)
	ready
	kubectl apply --server-side -f "$KUBERNETES_BIN/agents"
	await kubectl wait --for=condition=Established -f "$KUBERNETES_BIN/agents" # which refuses one without conditions
	exec agent-sandbox-controller --extensions --enable-webhook=false --leader-elect=false \
		--metrics-bind-address=127.0.0.1:18080 --health-probe-bind-address=127.0.0.1:18081
	;;
*) echo "daemon.sh: $part is no part of a cluster" >&2; exit 1 ;;
esac
