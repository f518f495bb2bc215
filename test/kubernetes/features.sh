#!/usr/bin/env bash
# Tries what an engine may want of a cluster, and prints a table of what works:
#
#   cluster.sh in features.sh [FEATURE...]
#
# Each feature is a function below whose name begins with "try_"; its last line of
# output is what was seen, its comment how it is asked for. Exits with 1 if any fails.
# shellcheck disable=SC2317 # functions that are called by name
set -euo pipefail

work=$(mktemp -d)
trap 'kubectl delete namespace features >/dev/null; rm -rf "$work"' EXIT
kubectl create namespace features >/dev/null
kubectl config view --raw >"$work/kubeconfig"
export KUBECONFIG=$work/kubeconfig
kubectl config set-context --current --namespace=features >/dev/null
kubectl wait --for=create serviceaccount/default --timeout=30s >/dev/null

# pod NAME SPEC [CONTAINER] makes a pod of one busybox, with more fields of its spec
# and of its container as JSON members, and waits until it runs.
pod() {
	create "$@"
	kubectl wait --for=jsonpath='{.status.phase}'=Running "pod/$1" --timeout=30s >/dev/null
}
create() {
	kubectl create -f - >/dev/null <<-END
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1", "labels": {"app": "$1"}},
		 "spec": {"terminationGracePeriodSeconds": 0, ${2:+$2,} "containers": [{
		  "name": "c", "image": "localhost/busybox:1", "command": ["sleep", "600"] ${3:+, $3}}]}}
	END
}
in_pod() { local pod=$1; shift; timeout 20 kubectl exec "$pod" -- "$@"; }
address() { kubectl get pod "$1" -o jsonpath='{.status.podIP}'; }
# reaches POD ADDRESS PORT tells whether a pod can connect to there.
reaches() { in_pod "$1" nc -w 1 "$2" "$3" </dev/null >/dev/null 2>&1; }
serve='"command": ["httpd", "-f", "-p", "8080"]'

# kubectl exec
try_exec() {
	pod exec ""
	local status=0
	in_pod exec sh -c 'exit 3' 2>/dev/null || status=$?
	[ "$status" = 3 ] && echo "exit status $status"
}

# kubectl port-forward
try_port_forward() {
	pod forward "" "$serve"
	coproc kubectl port-forward pod/forward :8080
	local line status=0
	read -r line <&"${COPROC[0]}"
	curl -sS -o /dev/null -w '%{http_code}\n' "http://$(sed -E 's/Forwarding from ([^ ]*) .*/\1/' <<<"$line")/" || status=$?
	kill "$COPROC_PID"
	return "$status"
}

# kind: NetworkPolicy (kube-router)
try_network_policy() {
	pod server "" "$serve"
	pod other "" "$serve"
	pod client ""
	local server other
	server=$(address server) other=$(address other)
	reaches client "$server" 8080
	reaches client "$other" 8080
	kubectl create -f - >/dev/null <<-END
		{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "server"}, "spec": {
		 "podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"],
		 "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "server"}}}], "ports": [{"port": 8080}]}]}}
	END
	local i
	for ((i = 0; i < 50; i++)); do
		if ! reaches client "$other" 8080; then
			reaches client "$server" 8080
			echo "reaches the pod that is allowed, and no more the other"
			return
		fi
		sleep 0.1
	done
	echo "not enforced"
	return 1
}

# hostUsers: false
try_user_namespace() {
	pod users '"hostUsers": false'
	in_pod users cat /proc/1/uid_map | awk '$2 > 0 {print "uid 0 is", $2, "outside"; seen = 1} END {exit !seen}'
}

# volumes: [{image: {reference}}]
try_image_volume() {
	pod image '"volumes": [{"name": "init", "image": {"reference": "localhost/sandbox-pod:dev", "pullPolicy": "Never"}}]' \
		'"volumeMounts": [{"name": "init", "mountPath": "/init", "readOnly": true}]'
	in_pod image ls -l /init/sandbox-pod | awk '{print $NF, $5, "bytes"}'
}

# kubectl patch --subresource resize
try_resize() {
	pod resize "" '"resources": {"limits": {"cpu": "200m", "memory": "64Mi"}}'
	kubectl patch pod resize --subresource resize --patch \
		'{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "400m", "memory": "128Mi"}, "limits": {"cpu": "400m", "memory": "128Mi"}}}]}}' >/dev/null
	kubectl wait --for=jsonpath='{.status.containerStatuses[0].resources.limits.memory}'=128Mi pod/resize --timeout=30s >/dev/null
	echo "memory and CPUs doubled, $(kubectl get pod resize -o jsonpath='{.status.containerStatuses[0].restartCount}') restarts"
}

# kind: PersistentVolumeClaim, of the default class (disks.sh)
try_persistent_volume() {
	kubectl create -f - >/dev/null <<-END
		{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": {
		 "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
	END
	local volume='"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]'
	local mount='"volumeMounts": [{"name": "disk", "mountPath": "/disk"}]'
	pod first "$volume" "$mount"
	in_pod first sh -c 'echo kept >/disk/file'
	kubectl delete pod first >/dev/null
	pod second "$volume, \"hostUsers\": false" "$mount"
	echo "a second pod reads: $(in_pod second cat /disk/file)"
	local name
	name=$(kubectl get pvc disk -o jsonpath='{.spec.volumeName}')
	kubectl delete pod second >/dev/null
	kubectl delete pvc disk >/dev/null
	kubectl wait --for=delete "pv/$name" --timeout=20s >/dev/null
}

# resources.limits.ephemeral-storage
try_ephemeral_storage() {
	create full "" '"resources": {"limits": {"ephemeral-storage": "8Mi"}}, "command": ["sh", "-c", "dd if=/dev/zero of=/tmp/f bs=1M count=16; sleep 600"]'
	kubectl wait --for=jsonpath='{.status.reason}'=Evicted pod/full --timeout=90s >/dev/null
	kubectl get pod full -o jsonpath='{.status.message}{"\n"}'
}

# resources.limits.memory
try_out_of_memory() {
	create memory '"restartPolicy": "Never"' '"resources": {"limits": {"memory": "32Mi"}}, "command": ["sh", "-c", "exec tail -c 100000000 /dev/zero"]'
	kubectl wait --for=jsonpath='{.status.phase}'=Failed pod/memory --timeout=30s >/dev/null
	kubectl get pod memory -o jsonpath='{.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}{"\n"}'
}

# seccompProfile: {type: Localhost}, file in /var/lib/kubelet/seccomp
try_seccomp_localhost() {
	echo '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 99}]}' \
		>/var/lib/kubelet/seccomp/features.json
	pod localhost '"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "features.json"}}'
	in_pod localhost sh -c 'mkdir /tmp/d 2>&1 || true' | grep -F "Cannot assign requested address"
}

# seccompProfile: {type: RuntimeDefault}
try_seccomp_default() {
	pod runtime '"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}'
	in_pod runtime grep Seccomp: /proc/1/status | grep -w 2
}

# activeDeadlineSeconds
try_deadline() {
	create deadline '"activeDeadlineSeconds": 1'
	kubectl wait --for=jsonpath='{.status.reason}'=DeadlineExceeded pod/deadline --timeout=30s >/dev/null
	echo DeadlineExceeded
}

# kind: Service, ClusterIP and NodePort (kube-proxy, nftables)
try_service() {
	pod service "" "$serve"
	pod visitor ""
	kubectl expose pod service --port=80 --target-port=8080 --type=NodePort >/dev/null
	kubectl wait --for=jsonpath='{.endpoints[0].conditions.ready}'=true endpointslice --selector=kubernetes.io/service-name=service --timeout=10s >/dev/null
	local ip port
	read -r ip port < <(kubectl get service service -o jsonpath='{.spec.clusterIP} {.spec.ports[0].nodePort}{"\n"}')
	curl -s --retry 20 --retry-connrefused --retry-delay 1 -o /dev/null "http://$NODE_ADDRESS:$port/"
	reaches visitor "$ip" 80
	echo "$ip:80 from a pod, $NODE_ADDRESS:$port from the node"
}

# https://kubernetes.default with the service account's token
try_api_from_pod() {
	pod api ""
	reaches api 10.96.0.1 443
	in_pod api test -s /var/run/secrets/kubernetes.io/serviceaccount/token
	echo "10.96.0.1:443 answers, and the token is there"
}

mapfile -t features < <(sed -n 's/^try_\(.*\)() {$/\1/p' "$0")
[ $# -eq 0 ] || features=("$@")
failed=0
printf '| feature | works | asked for by | seen |\n|---|---|---|---|\n'
for feature in "${features[@]}"; do
	how=$(grep -B1 "^try_$feature()" "$0" | sed -n 's/^# //p')
	# A subshell of its own, in which errexit holds.
	(set -e; "try_$feature") >"$work/out" 2>&1 &
	if wait $!; then works=yes; else works=no failed=1; fi
	# shellcheck disable=SC2016 # Markdown's quotes
	printf '| %s | %s | `%s` | %s |\n' "${feature//_/ }" $works "$how" "$(tail -n 1 "$work/out")"
done
exit $failed
