#!/bin/bash
# Runs check.sh in a virtual machine with a kernel of Debian, where systemd is process 1,
# the Debian package is installed, and an ordinary user logs in. Needs root.
#
#   systemd.sh BUILD SUITE DEB   the programs and what is made here are in BUILD; the kernel
#                                is the newest of the suite
set -euo pipefail
build=$(realpath "$1") suite=$2 deb=$(realpath "$3")
vm=$build/vm
here=$(dirname "$(realpath "$0")")
# shellcheck source=test/vm/machine.sh
. "$here/machine.sh"
kernel "$suite"
cp "$deb" "$vm/sandbox.deb"
disk "systemd-$suite" "$build"/sandbox{,-shim,-init} "$vm/rootless.test" "$vm/sandbox.deb"
boot "$disk" "$vm/systemd-$suite.console" /usr/lib/systemd/systemd
