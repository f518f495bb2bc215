#!/usr/bin/env bash
# Writes a copy of the tree under another module path:
#   publish.sh MODULE DIR
# MODULE is the path, host/path; DIR is removed first and then holds the copy:
# the files that git knows, with the path in go.mod, in imports and other string
# constants of Go files, in links between Go comments, in the documents and in
# the settings of the linters.
set -euo pipefail
cd "$(dirname "$0")/.."
module=$1 dir=$2
host=${module%%/*}
case $module in
*[!A-Za-z0-9._~/-]* | /* | */ | *//*) echo "publish: \"$module\" is no module path" >&2; exit 2 ;;
esac
case $module/$host in
*/*/*.*) ;;
*) echo "publish: MODULE wants host/path, like example.org/you/sandbox, not \"$module\"" >&2; exit 2 ;;
esac
was=$(go list -m)

rm -rf "$dir"
mkdir -p "$dir"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file" # removed and not committed yet
done | tar --null --files-from=- -cf - | tar -C "$dir" -xf -
cd "$dir"
go mod edit -module="$module"

# A path of ours is the module's name and one of its directories with Go files,
# where no other path goes on: pids/sandbox/... is a cgroup.
dirs=$(git -C "$OLDPWD" ls-files '*/*.go' | cut -d/ -f1 | sort -u | paste -sd'|')
grep -rlE "$was" . --include='*.go' --include='*.md' --include='.golangci.yml' |
  xargs -r sed -Ei \
    -e "s#(^|[^A-Za-z0-9./_-])$was/($dirs)([^A-Za-z0-9_-]|\$)#\1$module/\2\3#g" \
    -e "s#$was@v0\.0\.0 -replace=$was=#$module@v0.0.0 -replace=$module=#g"
gofmt -s -w .
