#!/bin/bash
# Runs schemathesis against a daemon on a home of its own:
#   api.sh BUILD CASES
# BUILD holds the programs and schemathesis; CASES is how many requests there
# shall be at least. It fails for a reply that docs/openapi.yaml does not have,
# for a fault of the daemon's, and for too few cases.
set -euo pipefail
build=$(cd "$1" && pwd) cases=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
export SANDBOX_HELPER_DIR=$build SANDBOX_HOME=$work/home
# Its profiles are not the user's.
export HOME=$work/user
mkdir -p "$SANDBOX_HOME" "$HOME" "$work/root"/{bin,etc,tmp,proc,sys,dev,root}
daemon=
finish() {
  if [ -n "$daemon" ]; then
    "$build/sandbox" ls -q | xargs -r "$build/sandbox" rm -f >/dev/null || true
    kill -INT "$daemon" && wait "$daemon" || true
  fi
  rm -rf "$work"
}
trap finish EXIT

cp /bin/busybox "$work/root/bin/"
for applet in $(/bin/busybox --list); do ln -sf busybox "$work/root/bin/$applet"; done
echo 'root:x:0:0:root:/root:/bin/sh' >"$work/root/etc/passwd"
# Any text may be an image: none is looked for elsewhere.
echo 'pull = "never"' >"$SANDBOX_HOME/config.toml"
"$build/sandbox" images import default "$work/root" >/dev/null

"$build/sandbox" serve --listen 127.0.0.1:0 2>"$work/log" &
daemon=$!
until grep -q '^sandbox: ready' "$work/log"; do
  kill -0 "$daemon" || { cat "$work/log"; exit 1; }
  sleep 0.1
done
FUZZ_URL=$(sed -n 's/^sandbox: ready on \([^ ]*\).*/\1/p' "$work/log")
FUZZ_KEY=$("$build/sandbox" keys create fuzz --permission Boxes --permission Keys \
  --permission observability.logs.query --permission observability.logs.write)
export FUZZ_URL FUZZ_KEY SCHEMATHESIS_HOOKS=hooks

operations=$(grep -c '^ *operationId:' "$here/../../docs/openapi.yaml")
status=0
cd "$work"
PYTHONPATH=$here "$build/schemathesis/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$here/../../docs/openapi.yaml" \
  --url "$FUZZ_URL" -H "Authorization: Bearer $FUZZ_KEY" \
  --max-examples $((cases / operations + 1)) ${FUZZ_FLAGS:-} | tee "$work/report" || status=$?
if grep -q '"level":"ERROR"' "$work/log"; then
  echo "the daemon has logged faults:"
  grep '"level":"ERROR"' "$work/log" | head -20
fi
kill -0 "$daemon" || { echo "the daemon has ended"; status=1; }
sent=$(cat "$work/cases")
echo "$sent cases over $operations operations"
[ "$sent" -ge "$cases" ] || { echo "fewer than the $cases wanted"; status=1; }
exit "$status"
