#!/bin/sh
# "make test": every check and test in order, each with its time; stops at the first that fails.
set -eu
: "${GO:=go}"
begin=$(date +%s)

step() {
	title=$1
	shift
	from=$(date +%s)
	printf '== %s\n' "$title"
	"$@" || { printf '== FAILED: %s, after %s s\n' "$title" "$(($(date +%s) - from))"; exit 1; }
	printf '== ok: %s, %s s\n' "$title" "$(($(date +%s) - from))"
}

# Never from the cache, which does not see what was built into the server. Two cores are shared by servers and tests: more
# packages at a time only make polling tests slow.
gotest() { $GO test -buildvcs=false -count=1 -p 2 "$@"; }

step "format and vet" sh pgxs/check.sh
step "Go packages" gotest $($GO list ./... | grep -v '/test/')
step "SQL tests" .build/pgtest regress
step "race tests" .build/pgtest isolation
if [ -d test/go ]; then
	docker version >/dev/null 2>&1 || printf '== SKIPPED: the container image; no Docker daemon answers\n'
	step "system tests" gotest -timeout 40m ./test/...
fi
printf '== all passed in %s s\n' "$(($(date +%s) - begin))"
