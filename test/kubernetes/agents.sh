#!/usr/bin/env bash
# Waits until agent-sandbox's controller works in the cluster that this runs in: until it
# has noticed a pool.
#
#   cluster.sh start agents && cluster.sh in agents.sh
set -euo pipefail

extensions=extensions.agents.x-k8s.io
# Nobody tells when the API server serves a new kind.
until kubectl apply -f - <<-END; do sleep 0.1; done >/dev/null 2>&1
	apiVersion: $extensions/v1beta1
	kind: SandboxWarmPool
	metadata: {name: first, namespace: default}
	spec: {replicas: 0, sandboxTemplateRef: {name: none}}
END
kubectl wait --for=jsonpath='{.status.observedGeneration}'=1 --timeout=60s --namespace default sandboxwarmpool/first
kubectl delete --namespace default sandboxwarmpool/first >/dev/null
