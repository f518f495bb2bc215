#!/bin/busybox sh
# shellcheck shell=dash # which busybox's comes from
# Process 1 of the virtual machine: brings up its disk and becomes the program there that
# the arguments name.
/bin/busybox --install /bin
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
for module in /modules/*; do insmod "$module"; done
mount -t ext4 /dev/vda /disk
for place in dev proc sys; do mount --move /$place /disk/$place; done
exec switch_root /disk "$@"
