#!/bin/sh
# Makes a small Debian root file system with bash and Python 3.
#
#   debian.sh FILE      FILE ends in .tar, .tar.gz or .tar.zst
#
# Packages come from this machine's own apt sources, and nothing else of the
# network is used. An existing FILE is kept: remove it to make it again. FILE
# appears whole or not at all. Needs root and Debian's mmdebstrap.
# SUITE and PACKAGES change what the file holds.
set -eu

die() { echo "debian.sh: $*" >&2; exit 1; }

[ $# -eq 1 ] || die "usage: debian.sh FILE.tar[.gz|.zst]"
file=$1
case $file in
*.tar) pack="cat" ;;
*.tar.gz) pack="gzip -6 -n" ;;
*.tar.zst) pack="zstd -q -9 -T0" ;;
*) die "$file: want a name that ends in .tar, .tar.gz or .tar.zst" ;;
esac
if [ -s "$file" ]; then
	echo "$file is there already" >&2
	exit 0
fi
for tool in mmdebstrap ${pack%% *}; do
	command -v "$tool" >/dev/null || die "needs $tool: apt-get install $tool"
done
[ "$(id -u)" -eq 0 ] || die "needs root: files in the image belong to several users"

suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
# usr-is-merged and the hook keep usrmerge, and with it all of perl, away.
packages=${PACKAGES:-bash,python3,usr-is-merged}

mkdir -p "$(dirname "$file")"
part=$(mktemp "$file.XXXXXX")
trap 'rm -f "$part" "$part.packed"' EXIT
trap 'exit 130' INT TERM

# Only this machine's Debian sources: for those of other vendors mmdebstrap
# would ask for this suite too.
debian() { grep -qs "$suite" "$1" && grep -qsE '/debian(-security)?/?( |$)' "$1"; }
set --
for source in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
	if debian "$source"; then set -- "$@" "$source"; fi
done
[ $# -gt 0 ] || die "no Debian $suite in /etc/apt/sources.list*"

echo "making Debian $suite ($packages) in $file: about a minute" >&2
# shellcheck disable=SC2016 # mmdebstrap's own shell expands "$1"
mmdebstrap --mode=root --variant=minbase --format=tar \
	--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="$packages" \
	--aptopt='Acquire::Languages "none"' \
	--dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-include=/usr/share/doc/*/copyright' \
	--dpkgopt='path-exclude=/usr/share/info/*' \
	--dpkgopt='path-exclude=/usr/share/lintian/*' \
	--customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/log/*.log "$1"/var/log/apt/*' \
	--customize-hook='rm -f "$1"/etc/resolv.conf "$1"/etc/hostname' \
	"$suite" "$part" "$@" >&2 || die "mmdebstrap failed"
if [ "$pack" != cat ]; then
	$pack -c "$part" >"$part.packed" || die "$pack failed"
	mv "$part.packed" "$part"
fi
chmod 644 "$part"
mv "$part" "$file"
echo "made $file: $(du -h "$file" | cut -f1)" >&2
