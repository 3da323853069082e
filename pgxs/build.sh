#!/bin/sh
# Builds the extension for PG_CONFIG, installs it into .build/pgroot/<major>, and builds the commands.
set -eu
umask 022
: "${PG_CONFIG:=pg_config}" "${GO:=go}"
mkdir -p .build

# One build at a time in a checkout: two would overwrite each other's objects.
exec 9>.build/lock
if command -v flock >/dev/null; then flock 9; fi

root=$(sh pgxs/pgroot.sh)
log=.build/build.log
# Bitcode is of use to installed servers only; here it would double the compile time.
if ! make --no-print-directory -f pgxs/module.mk PG_CONFIG="$PG_CONFIG" with_llvm=no DESTDIR="$root" install >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
grep -E 'warning:' "$log" >&2 || true

$GO build -buildvcs=false -o .build/pgtest ./internal/pgtest/cmd/pgtest
if [ -d cmd/synchro ]; then
	CGO_ENABLED=0 $GO build -buildvcs=false -trimpath -ldflags "-s -w" -o .build/synchro ./cmd/synchro
fi
