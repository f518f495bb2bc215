#!/bin/sh
# Packs what `make` has built as a Debian package:
#
#   build.sh BUILD STAGE VERSION OUT
#
# BUILD has the programs, STAGE what `make install PREFIX=/usr` has put there, and is
# used up; OUT is the package. SOURCE_DATE_EPOCH is the time of all files, so that the
# same sources give the same bytes.
set -eu

die() { echo "build.sh: $*" >&2; exit 1; }

[ $# -eq 4 ] || die "usage: build.sh BUILD STAGE VERSION OUT"
build=$1 stage=$2 version=$3 out=$4
here=$(dirname "$0")
: "${SOURCE_DATE_EPOCH:?}" "${DEB_ARCH:?}" "${DEB_MAINTAINER:?}" "${DEB_LEVEL:?}"
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
for tool in dpkg-deb objdump md5sum; do
	command -v "$tool" >/dev/null || die "needs $tool: apt-get install dpkg binutils coreutils"
done
umask 022

place() { install -D -m "$1" "$2" "$stage/$3"; }
place 644 "$here/sandbox.service" usr/lib/systemd/system/sandbox.service
place 644 "$here/sandbox.socket" usr/lib/systemd/system/sandbox.socket
place 644 "$here/sysusers.conf" usr/lib/sysusers.d/sandbox.conf
place 644 "$here/config.toml" etc/sandbox/config.toml
place 644 "$here/lintian-overrides" usr/share/lintian/overrides/sandbox
place 755 "$build/sandbox-logs" usr/libexec/sandbox/sandbox-logs
place 644 docs/service.md usr/share/doc/sandbox/service.md
place 644 "$here/copyright" usr/share/doc/sandbox/copyright
rm -f "$stage/usr/share/doc/sandbox/LICENSE" # Debian has it once, and copyright names it
mkdir -p "$stage/usr/share/zsh/vendor-completions"
mv "$stage/usr/share/zsh/site-functions/_sandbox" "$stage/usr/share/zsh/vendor-completions/"
rmdir "$stage/usr/share/zsh/site-functions"
{
	printf 'sandbox (%s) unstable; urgency=medium\n\n  * CHANGELOG.md of the sources says what has changed.\n\n' "$version"
	printf ' -- %s  %s\n' "$DEB_MAINTAINER" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
} >"$stage/usr/share/doc/sandbox/changelog"
find "$stage/usr/share/man" "$stage/usr/share/doc/sandbox/changelog" -type f -exec gzip -9n {} +

# The newest version of the C library that a program wants a symbol of.
libc=$(find "$stage/usr" -type f -perm -100 -exec objdump -T {} + 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed s/GLIBC_// | sort -uV | tail -1)
[ -n "$libc" ] || die "no program is linked with the C library"

control=$stage/DEBIAN
mkdir -p "$control"
size=$(find "$stage" -path "$control" -prune -o -type f -printf '%s\n' | awk '{ all += int(($1 + 1023) / 1024) } END { print all }')
sed -e "s|@VERSION@|$version|" -e "s|@ARCH@|$DEB_ARCH|" -e "s|@MAINTAINER@|$DEB_MAINTAINER|" -e "s|@SIZE@|$size|" -e "s|@LIBC@|$libc|" \
	"$here/control.in" >"$control/control"
echo /etc/sandbox/config.toml >"$control/conffiles"
for script in postinst prerm postrm; do install -m 755 "$here/$script" "$control/$script"; done
(cd "$stage" && find etc usr -type f -print0 | sort -z | xargs -0 md5sum) | grep -v '  etc/' >"$control/md5sums"
find "$stage" -type d -exec chmod 755 {} +
find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz -z"$DEB_LEVEL" --threads-max=1 --build "$stage" "$out" >/dev/null
