#!/bin/sh
# Fetches libchdb, the engine of the log service, from the npm registry:
#
#   libchdb.sh PACKAGE VERSION SHA512 DIR
#
# leaves DIR/libchdb.so. The package is unpacked only after its SHA-512 was
# found right, and the file appears whole or not at all. About 150 MB are
# fetched and 560 MB are kept.
set -eu

die() { echo "libchdb.sh: $*" >&2; exit 1; }

[ $# -eq 4 ] || die "usage: libchdb.sh PACKAGE VERSION SHA512 DIR"
package=$1@$2 sha512=$3 directory=$4
[ ! -s "$directory/libchdb.so" ] || exit 0
[ -n "$sha512" ] || die "no SHA-512 of $package is pinned: set CHDB_SHA512 to it (npm view $package dist.integrity)"
for tool in npm sha512sum tar; do
	command -v "$tool" >/dev/null || die "needs $tool: apt-get install $tool"
done

mkdir -p "$directory"
work=$(mktemp -d "$directory/fetch.XXXXXX")
child=
trap '[ -z "$child" ] || kill "$child" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "fetching $package (about 150 MB) into $directory" >&2
# npm's own bar does not show how far it is.
npm pack --silent --cache "$work/npm" --pack-destination "$work" "$package" >"$work/out" 2>"$work/err" &
child=$!
while kill -0 "$child" 2>/dev/null; do
	[ ! -t 2 ] || printf '\r%s MB ' "$(du -sm "$work" | cut -f1)" >&2
	sleep 0.5
done
[ ! -t 2 ] || printf '\r\033[K' >&2
wait "$child" || { cat "$work/err" "$work/out" >&2; die "npm can't fetch $package"; }
child=

set -- "$work"/*.tgz
[ -f "$1" ] || die "npm left no package of $package"
echo "$sha512  $1" | sha512sum --check --status || die "$package is not what was pinned: its SHA-512 is $(sha512sum "$1" | cut -d' ' -f1)"
tar -xzf "$1" -C "$work" package/libchdb.so
mv "$work/package/libchdb.so" "$directory/libchdb.so"
