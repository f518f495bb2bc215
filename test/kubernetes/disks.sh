#!/usr/bin/env bash
# Gives each claim of the storage class "disks" a directory of the node, as the
# provisioner of a real cluster would give it a disk, and takes that away after the
# claim. Sizes are not enforced, and all users may write. Runs as a part of a cluster
# (daemon.sh) and ends when the API server goes away.
set -euo pipefail

kubectl apply -f - <<END
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: sandbox.test/disks
END

# watch KIND COLUMNS prints a line for each object, and one more for each change.
watch() { kubectl get "$1" --all-namespaces --watch --no-headers --output=custom-columns="$2"; }

provide() {
	local class phase namespace name uid size
	while read -r class phase namespace name uid size; do
		[ "$class $phase" = "disks Pending" ] || continue
		install -d -m 777 "$RUN/disks/$uid"
		# A second change of a claim that waits finds its volume there.
		kubectl create -f - <<-END || true
			apiVersion: v1
			kind: PersistentVolume
			metadata: {name: $uid}
			spec:
			  storageClassName: disks
			  capacity: {storage: $size}
			  accessModes: [ReadWriteOnce]
			  persistentVolumeReclaimPolicy: Retain
			  claimRef: {namespace: $namespace, name: $name, uid: $uid}
			  hostPath: {path: $RUN/disks/$uid, type: Directory}
		END
	done
}

take() {
	local class phase name
	while read -r class phase name; do
		[ "$class $phase" = "disks Released" ] || continue
		kubectl delete --wait=false --ignore-not-found persistentvolume "$name"
		rm -rf "$RUN/disks/$name"
	done
}

watch persistentvolume 'C:.spec.storageClassName,P:.status.phase,N:.metadata.name' | take &
watch persistentvolumeclaim 'C:.spec.storageClassName,P:.status.phase,S:.metadata.namespace,N:.metadata.name,U:.metadata.uid,R:.spec.resources.requests.storage' | provide
