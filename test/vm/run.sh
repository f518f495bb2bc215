#!/bin/bash
# Runs the tests of the pattern $1 as a service would be run, then turns the
# virtual machine off. This is process 1: whatever happens, it goes on.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin SANDBOX_HELPER_DIR=/programs SANDBOX_TEST_INTRUDER=/programs/intruder SANDBOX_TEST_PATIENCE=10m
mkdir -p /dev/pts /dev/shm
mount -t devpts none /dev/pts
mount -t tmpfs none /dev/shm
mount -t tmpfs none /run
mount -t cgroup2 -o nsdelegate none /sys/fs/cgroup # the options of systemd
ip link set lo up
rm -f /etc/resolv.conf && touch /etc/resolv.conf # hosts have one, and a test mounts its own over it
# By these lists 6.12 ends what writes fast in little memory: docs/RATIONALE.md, oom_killed.
[ ! -e /sys/kernel/mm/lru_gen/enabled ] || echo n >/sys/kernel/mm/lru_gen/enabled
mkdir /sys/fs/cgroup/service
echo "Linux $(uname -r), cgroup2 with: $(cat /sys/fs/cgroup/cgroup.controllers)"
# shellcheck disable=SC2164 # what follows says what is missing
cd /programs
code=0
for suite in engine attack; do
	sh -c 'echo $$ >/sys/fs/cgroup/service/cgroup.procs; exec "./$2.test" -test.timeout 80m -test.v -test.run "$1"' sh "$1" "$suite" || code=$?
done
[ -z "$(find /sys/fs/cgroup/sandbox 2>/dev/null)" ] || { find /sys/fs/cgroup/sandbox -type d; code=left; }
echo "tests ended: $code"
busybox poweroff -f
