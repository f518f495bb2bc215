#!/bin/bash
# Runs schemathesis against a daemon on a home of its own:
#   api.sh BUILD CASES
# BUILD holds the programs and schemathesis; CASES is how many requests there
# shall be at least. It fails for a reply that docs/openapi.yaml does not have,
# for an internal error of the daemon, and for too few cases.
set -euo pipefail
build=$(cd "$1" && pwd) cases=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
export SANDBOX_HELPER_DIR=$build SANDBOX_HOME=$work/home
# The daemon must not use the user's profiles.
export HOME=$work/user
mkdir -p "$SANDBOX_HOME" "$HOME" "$work/root"/{bin,etc,tmp,proc,sys,dev,root}
daemon=
# shellcheck disable=SC2317 # the trap calls it
finish() {
  if [ -n "$daemon" ]; then
    "$build/sandbox" ls -q | xargs -r "$build/sandbox" rm -f >/dev/null || true
    kill -TERM "$daemon" || true
    wait "$daemon" || true
  fi
  rm -rf "$work"
}
trap finish EXIT

cp /bin/busybox "$work/root/bin/"
for applet in $(/bin/busybox --list | grep -vx busybox); do ln -s busybox "$work/root/bin/$applet"; done
echo 'root:x:0:0:root:/root:/bin/sh' >"$work/root/etc/passwd"
# Generated requests name any text as an image: don't pull.
echo 'pull = "never"' >"$SANDBOX_HOME/config.toml"
"$build/sandbox" --local images import default "$work/root" >/dev/null

printf '[logs.budget]\nqueries_per_minute = 1000000\n' >"$work/config.toml"
"$build/sandbox" serve --listen 127.0.0.1:0 --config "$work/config.toml" 2>"$work/log" &
daemon=$!
until grep -q '^sandbox: ready' "$work/log"; do
  kill -0 "$daemon" || { cat "$work/log"; exit 1; }
  sleep 0.1
done
FUZZ_URL=$(sed -n 's/^sandbox: ready on \([^ ]*\).*/\1/p' "$work/log")
FUZZ_KEY=$("$build/sandbox" keys create fuzz --permission Boxes --permission Keys \
  --permission observability.logs.query --permission observability.logs.write)
export FUZZ_URL FUZZ_KEY SCHEMATHESIS_HOOKS=hooks

# One process takes 25 ms for a request, and uses one CPU: so there is one for
# each CPU. Each makes its part of the cases in runs with seeds of their own, as a
# run has fewer than it may: some operations have few requests.
operations=$(grep -c '^ *operationId:' "$here/../../docs/openapi.yaml")
parts=$(nproc)
make_part() { # in the directory of the part
  local sent=0 failed=0
  while [ "$sent" -lt $((cases / parts + 1)) ]; do
    # shellcheck disable=SC2086 # FUZZ_FLAGS is several words, or none
    PYTHONPATH=$here "$build/schemathesis/bin/schemathesis" --config-file "$here/schemathesis.toml" run \
      "$here/../../docs/openapi.yaml" --url "$FUZZ_URL" -H "Authorization: Bearer $FUZZ_KEY" \
      --max-examples $(((cases / parts - sent) / operations + 1)) ${FUZZ_FLAGS:-} >>report 2>&1 || failed=$?
    sent=$((sent + $(cat cases)))
    echo "$sent" >sent
    [ "$failed" -eq 0 ] || return "$failed"
  done
}
status=0
running=()
for ((part = 0; part < parts; part++)); do
  mkdir "$work/$part"
  (cd "$work/$part" && make_part) &
  running+=($!)
done
for part in "${running[@]}"; do wait "$part" || status=$?; done
cat "$work"/*/report
if grep -m 20 '"level":"ERROR"' "$work/log"; then
  echo "these are the first faults that the daemon has logged"
fi
kill -0 "$daemon" || { echo "the daemon has ended"; status=1; }
sent=$(cat "$work"/*/sent | awk '{n += $1} END {print n + 0}')
echo "$sent cases over $operations operations"
[ "$sent" -ge "$cases" ] || { echo "fewer than the $cases wanted"; status=1; }
exit "$status"
