#!/bin/bash
# Runs tests of the engine in a virtual machine with Debian's own kernel, where
# cgroup2 holds every controller. The host's cgroups and kernel don't matter,
# it needs no root, and nothing is installed on it.
#
#   cgroup2.sh BUILD PATTERN   the programs and what is made here are in BUILD
set -euo pipefail
build=$(realpath "$1") pattern=$2
vm=$build/vm
here=$(dirname "$(realpath "$0")")
mkdir -p "$vm"
cd "$vm"

# The kernel is only unpacked.
if ! ls linux/boot/vmlinuz-* >linux.log 2>&1; then
	package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2}')
	echo "unpacking $package into $vm/linux"
	apt-get download "$package" >linux.log 2>&1 || { cat linux.log >&2; exit 1; }
	dpkg -x ./"$package"_*.deb linux
	rm ./"$package"_*.deb
fi
kernel=$(echo linux/boot/vmlinuz-*)
version=${kernel#*vmlinuz-}
depmod -b linux "$version"

# The disk: ext4, as the home has to be on it, with the programs and the tests.
rm -rf root initrd disk
mkdir -p root/{bin,sbin,usr/bin,usr/sbin,etc,dev,proc,sys,tmp,run,root,programs}
cp /bin/busybox root/bin/
cp "$build"/sandbox-{shim,init} {engine,attack}.test intruder root/programs/
install "$here/run.sh" root/programs/run
echo 'root:x:0:0:root:/root:/bin/sh' >root/etc/passwd
truncate -s 1G disk
/sbin/mkfs.ext4 -q -E root_owner=0:0 -d root disk

# The first file system in memory: modules, and the way to the disk.
mkdir -p initrd/{bin,modules,dev,proc,sys,disk}
cp /bin/busybox initrd/bin/
install "$here/init.sh" initrd/init
/sbin/modprobe -d linux -S "$version" -a --show-depends virtio_pci virtio_blk ext4 overlay loop veth \
	nf_tables nft_chain_nat nft_nat nft_masq nft_ct nft_fib_inet |
	awk '$1 == "insmod" && !seen[$2]++ {print $2}' >modules
n=100
while read -r module; do
	cp "$module" "initrd/modules/$((n++))-${module##*/}"
done <modules
(cd initrd && find . | busybox cpio -o -H newc 2>cpio.log | gzip -1) >initrd.gz

# Emulated by default: /dev/kvm inside another virtual machine may not work.
accel=${VM_ACCEL:-tcg}
echo "starting Linux $version ($accel): $pattern"
timeout "${VM_TIMEOUT:-1500}" qemu-system-x86_64 -accel "$accel" -cpu max -smp 2 -m 3072 -no-reboot \
	-display none -monitor none -serial stdio -nic none \
	-kernel "$kernel" -initrd initrd.gz -append "console=ttyS0 quiet panic=-1 -- $pattern" \
	-drive file=disk,format=raw,if=virtio,cache=unsafe </dev/null | sed -u 's,\r$,,' | tee console
grep -qx 'tests ended: 0' console
