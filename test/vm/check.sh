#!/bin/bash
# shellcheck disable=SC2016 # the shells of others expand what is in single quotes
# Installs the Debian package and uses it, as a member of its group and as a user
# without root, then turns the virtual machine off.
failed=0
# want NAME COMMAND... runs a command that has to succeed, and prints what it says if it does not.
want() {
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then echo "ok       $name: $(echo "$said" | tail -1)"; else
		failed=1
		echo "FAILED   $name: $*"
		echo "$said"
	fi
}
# says TEXT COMMAND... fails unless the command prints the text.
says() {
	local said
	said=$("${@:2}" 2>&1) || { echo "$said"; return 1; }
	echo "$said"
	[[ $said == *"$1"* ]]
}
login() { su -l "$1" -c "$2"; } # a session of systemd, by PAM

echo "Linux $(uname -r), $(systemctl --version | head -1), cgroup2 with: $(cat /sys/fs/cgroup/cgroup.controllers)"
ip link set lo up
want 'the package is installed' dpkg -i /programs/sandbox.deb
want 'its socket waits' says active systemctl is-active sandbox.socket
want 'its service is ready' says active systemctl is-active sandbox.service
want 'doctor of root' sandbox doctor
mkdir -p /small/{bin,etc,tmp,proc,sys,dev,root}
cp /bin/busybox /small/bin/
for applet in $(busybox --list | grep -vx busybox); do ln -sf busybox "/small/bin/$applet"; done
echo 'root:x:0:0:root:/root:/bin/sh' >/small/etc/passwd
useradd -m -s /bin/bash -G sandbox member
useradd -m -s /bin/bash ordinary
want 'a member imports an image' login member 'sandbox images import default /small'
want 'a member runs a command' says 42 login member 'sandbox run --network None default -- sh -c "echo \$((6 * 7))"'
want 'a member makes a box' login member 'sandbox create --name kept --network None default'
want 'the service starts again' systemctl restart sandbox
want 'its box lives on' says alive login member 'sandbox exec kept -- echo alive'
want 'the box is outside of the service' says sandbox sh -c 'ls -d /sys/fs/cgroup/sandbox/*/'
want 'the box is removed' login member 'sandbox rm -f kept'
want 'others may not use the socket' login ordinary '! test -w /run/sandbox.sock'

want 'doctor of a user who has logged in' login ordinary 'sandbox doctor'
want 'that user imports an image' login ordinary 'sandbox --local images import default /small'
want 'and runs a command' says 42 login ordinary 'sandbox --local run --network None default -- sh -c "echo \$((6 * 7))"'
want 'whose memory is bounded' login ordinary '! sandbox --local run --network None -m 64 default -- sh -c "x=x; while :; do x=\$x\$x; done"'
want 'that user makes a box' login ordinary 'sandbox --local create --name bounded --network None default'
want 'whose processes are bounded' says 4096 sh -c 'cat /sys/fs/cgroup/user.slice/user-*/user@*.service/sandbox/*/execs/pids.max'
want 'and which is removed' login ordinary 'sandbox --local rm -f bounded'
want 'in a scope of its own, too' says 42 login ordinary 'systemd-run --user --scope --quiet -p Delegate=yes -- sandbox --local run --network None default -- sh -c "echo \$((6 * 7))"'
cd /programs || failed=1
SANDBOX_HELPER_DIR=/programs ./rootless.test -test.v -test.timeout 30m || failed=1
want 'the package is removed' dpkg --purge sandbox
echo "tests ended: $failed"
systemctl poweroff --force --force
