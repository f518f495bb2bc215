#!/usr/bin/env bash
# Process 1 of a cluster, started by cluster.sh in namespaces of its own: makes the
# node's mounts and addresses, starts all parts, and reaps what they leave behind.
set -euo pipefail

here=$(dirname "$(realpath "$0")")

# This /proc is still that of the machine: there cluster.sh looks for the process.
read -r pid _ </proc/self/stat
echo "$pid" >"$RUN/pid"

mount -t proc proc /proc
# A volume that a pod mounts must be seen by other pods.
mount --make-rshared /
# containerd, the kubelet and the network plugins keep state there.
mount -t tmpfs tmpfs /run
mkdir -p "$RUN"/var/{upper,work}
mount -t overlay overlay -o "lowerdir=/var,upperdir=$RUN/var/upper,workdir=$RUN/var/work" /var
# The kubelet sees what it wants here, and the machine keeps its own.
for wanted in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1; do
	shown=$RUN/$(basename "${wanted%=*}")
	echo "${wanted#*=}" >"$shown"
	mount --bind "$shown" "/proc/sys/${wanted%=*}"
done
# A user namespace may mount /proc only where another is seen of which nothing is covered.
mkdir /run/proc
mount -t proc proc /run/proc
# The files of pods with user namespaces are mounted with other owners, which an
# overlay can't do. seccomp has the profiles that pods may name.
mkdir -p "$RUN/kubelet/seccomp" /var/lib/kubelet
mount --bind "$RUN/kubelet" /var/lib/kubelet

ip link set lo up
# A bridge without ports holds the node's address: not every kernel has dummy devices.
ip link add node0 type bridge
ip address add "$NODE_ADDRESS/32" dev node0
ip link set node0 up
# The kubelet takes no node without a default route.
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward

# cluster.sh waits for this line.
echo started >&3
exec 3>&-

for part in containerd etcd apiserver controller-manager scheduler kubelet proxy policies disks; do
	setsid "$here/daemon.sh" "$part" </dev/null >"$LOGS/$part.log" 2>&1 &
done
# bash reaps orphans too while it waits.
sleep infinity &
wait
