# shellcheck shell=bash # sourced by the scripts beside this one
# shellcheck disable=SC2154 # vm and here are of the script that reads this
# The kernels, the disks and the start of the virtual machines. The host's cgroups and kernel
# don't matter, and nothing is installed on the host. The disks need root, as their files
# belong to several users.

# mirror has the kernels of Debian.
mirror=${VM_MIRROR:-http://deb.debian.org/debian}

# debian SUITE COMMAND... runs a command of apt on a suite of Debian, whatever the
# sources of this host are.
debian() {
	local apt=$vm/$1/apt
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$apt/sources.list"
	"$2" -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Preferences=/dev/null \
		-o Dir::Etc::PreferencesParts=/dev/null -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" "${@:3}"
}

# emulator unpacks the QEMU of Debian's backports below $vm/qemu: Linux 6.12 faults as it
# starts where Debian 12's own emulates it. It sets qemu. The libraries are of Debian 12.
emulator() {
	local at=$vm/qemu package
	if ! [ -x "$at/usr/bin/qemu-system-x86_64" ]; then
		mkdir -p "$at"
		debian bookworm-backports apt-get update >"$at/log" 2>&1 || { cat "$at/log" >&2; return 1; }
		for package in seabios qemu-system-{data,common,x86}; do
			(cd "$at" && debian bookworm-backports apt-get download "$package/bookworm-backports" >log 2>&1) || { cat "$at/log" >&2; return 1; }
			dpkg -x "$at/$package"_*.deb "$at"
			rm "$at/$package"_*.deb
		done
	fi
	export QEMU_MODULE_DIR=$at/usr/lib/x86_64-linux-gnu/qemu # else those of another QEMU are tried
	qemu=("$at/usr/bin/qemu-system-x86_64" -L "$at/usr/share/qemu" -L "$at/usr/share/seabios")
}

# kernel SUITE unpacks the suite's newest kernel below $vm/SUITE and makes its first file
# system in memory: modules, and the way to the disk. It sets kernel and initrd.
kernel() {
	local at=$vm/$1 package version module n=100
	mkdir -p "$at"
	if ! compgen -G "$at/linux/boot/vmlinuz-*" >/dev/null; then
		debian "$1" apt-get update >"$at/log" 2>&1 || { cat "$at/log" >&2; return 1; }
		package=$(debian "$1" apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2}')
		echo "unpacking $package into $at/linux"
		(cd "$at" && debian "$1" apt-get download "$package" >log 2>&1) || { cat "$at/log" >&2; return 1; }
		dpkg -x "$at/$package"_*.deb "$at/linux"
		rm "$at/$package"_*.deb
	fi
	kernel=$(echo "$at"/linux/boot/vmlinuz-*)
	version=${kernel#*vmlinuz-}
	initrd=$at/initrd.gz
	depmod -b "$at/linux" "$version"
	rm -rf "$at/initrd"
	mkdir -p "$at"/initrd/{bin,modules,dev,proc,sys,disk}
	cp /bin/busybox "$at/initrd/bin/"
	install "$here/init.sh" "$at/initrd/init"
	while read -r module; do
		cp "$module" "$at/initrd/modules/$((n++))-${module##*/}"
	done < <(/sbin/modprobe -d "$at/linux" -S "$version" -a --show-depends virtio_pci virtio_blk ext4 overlay loop veth tun \
		autofs4 nf_tables nft_chain_nat nft_nat nft_masq nft_ct nft_fib_inet nft_connlimit nft_limit nf_conntrack_netlink | awk '$1 == "insmod" && !seen[$2]++ {print $2}')
	(cd "$at/initrd" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$initrd"
}

# packages are what a disk has beside Debian's essential ones: systemd, and what doctor
# wants of a host.
packages=systemd-sysv,dbus,dbus-user-session,libpam-systemd,adduser,uidmap,passt,slirp4netns,nftables,iproute2,e2fsprogs,procps,busybox-static,usr-is-merged

# disk NAME FILE... makes a disk of Debian 12 with files in /programs: ext4, as the home has
# to be on it. It sets disk.
disk() {
	local tree root=$vm/$1.root
	tree=$vm/debian-$(echo "$packages" | cksum | cut -d' ' -f1).tar
	[ -s "$tree" ] || SUITE=bookworm PACKAGES=$packages "$here/../image/debian.sh" "$tree"
	disk=$vm/$1.disk
	rm -rf "$root" "$disk"
	mkdir -p "$root/programs"
	tar -xf "$tree" -C "$root"
	cp "${@:2}" "$here"/{run,check}.sh "$root/programs/"
	install -m 644 "$here/check.service" "$root/etc/systemd/system/"
	mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
	ln -s ../check.service "$root/etc/systemd/system/multi-user.target.wants/"
	echo sandbox-vm >"$root/etc/hostname"
	truncate -s 3G "$disk"
	/sbin/mkfs.ext4 -q -E root_owner=0:0 -N 500000 -d "$root" "$disk"
	rm -rf "$root"
}

# boot DISK CONSOLE PROGRAM... starts a machine with a disk, on which the program is process 1. It
# returns when the machine is off, and fails unless that said that all went well.
boot() {
	# Emulated: /dev/kvm inside another virtual machine may not work.
	local accel=${VM_ACCEL:-tcg} cpu=${VM_CPU:-max}
	echo "starting Linux ${kernel##*vmlinuz-} ($accel): ${*:3}"
	emulator
	timeout "${VM_TIMEOUT:-6000}" "${qemu[@]}" -accel "$accel" -cpu "$cpu" -smp 2 -m 3072 -no-reboot \
		-display none -monitor none -serial stdio -nic none \
		-kernel "$kernel" -initrd "$initrd" -append "console=ttyS0 quiet panic=-1 -- ${*:3}" \
		-drive file="$1",format=raw,if=virtio,cache=unsafe </dev/null | sed -u 's,\r$,,' | tee "$2"
	grep -qx 'tests ended: 0' "$2"
}
