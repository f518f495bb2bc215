#!/bin/bash
# Runs tests of the engine in a virtual machine with a kernel of Debian, where cgroup2
# holds every controller. Needs root.
#
#   cgroup2.sh BUILD SUITE PATTERN   the programs and what is made here are in BUILD; the
#                                    kernel is the newest of the suite
set -euo pipefail
build=$(realpath "$1") suite=$2 pattern=$3
vm=$build/vm
here=$(dirname "$(realpath "$0")")
# shellcheck source=test/vm/machine.sh
. "$here/machine.sh"
kernel "$suite"
disk "cgroup2-$suite" "$build"/sandbox-{shim,init} "$vm"/{engine,attack}.test "$vm/intruder"
boot "$disk" "$vm/cgroup2-$suite.console" /programs/run.sh "$pattern"
