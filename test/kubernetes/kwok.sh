#!/usr/bin/env bash
# Brings fake nodes into the cluster that it runs in: kwok says what a kubelet would,
# and their pods are Running without a process. A pod gets there only if it
# tolerates the taint kwok.x-k8s.io/node.
#
#   cluster.sh start kwok && cluster.sh in kwok.sh N
set -euo pipefail

for ((i = 0; i < ${1:?how many nodes}; i++)); do
	cat <<-END
		---
		apiVersion: v1
		kind: Node
		metadata:
		  name: fake-$i
		  labels: {type: kwok, kubernetes.io/hostname: fake-$i}
		  annotations: {kwok.x-k8s.io/node: fake}
		spec:
		  taints: [{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]
		status:
		  capacity: &size {cpu: "32", memory: 256Gi, ephemeral-storage: 1Ti, pods: "250"}
		  allocatable: *size
	END
done | kubectl apply -f - >/dev/null
kubectl wait --for=condition=Ready node --selector=type=kwok --timeout=60s
