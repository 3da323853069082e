#!/bin/sh
# Makes .build/pgroot/<major>, a private copy of the PostgreSQL installation of PG_CONFIG, and prints its path.
#
# PostgreSQL finds its share and lib directories relative to the real path of its binary. So a copy of the binaries under
# another root (<root>/usr/lib/postgresql/15/bin, ...) uses that root's directories, our files go there with DESTDIR=<root>,
# and neither the system nor another checkout ever sees them. Hard links where possible: they are real paths, and free.
set -eu
umask 022
: "${PG_CONFIG:=pg_config}"
here=$(pwd)

bindir=$("$PG_CONFIG" --bindir)
sharedir=$("$PG_CONFIG" --sharedir)
pkglibdir=$("$PG_CONFIG" --pkglibdir)
pgxs=$(dirname "$("$PG_CONFIG" --pgxs)")/../..
major=$("$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
[ -x "$bindir/postgres" ] || { echo "no server in $bindir; set PG_CONFIG to that of an installed PostgreSQL server" >&2; exit 1; }

# The server runs as user postgres when we are root, and must be able to read the copy.
base=$here/.build/pgroot
mkdir -p .build
if [ "$(id -u)" = 0 ] && ! setpriv --reuid=postgres --regid=postgres --clear-groups test -x "$here/.build"; then
	# The checkout is in a directory that postgres can't enter: keep the copy outside.
	base=/var/tmp/synchro-pgroot-$(printf '%s' "$here" | cksum | cut -d' ' -f1)
	mkdir -p "$base"
	rm -rf .build/pgroot
	ln -sfn "$base" .build/pgroot
fi
root=$base/$major

stamp="2 $bindir $("$PG_CONFIG" --version) $(stat -c '%i %Y %s' "$bindir/postgres")"
if [ ! -f "$root/stamp" ] || [ "$(cat "$root/stamp")" != "$stamp" ]; then
	rm -rf "$root"
	for dir in "$bindir" "$pkglibdir" "$sharedir"; do
		mkdir -p "$root$(dirname "$dir")"
		[ -d "$root$dir" ] || cp -al "$dir" "$root$(dirname "$dir")/" 2>/dev/null ||
			{ rm -rf "${root:?}$dir"; cp -a "$dir" "$root$(dirname "$dir")/"; }
	done
	ln -sfn ".$bindir" "$root/bin"
	ln -sfn ".$pkglibdir" "$root/pkglib"
	ln -sfn "$pgxs" "$root/pgxs"
	# A synchro of the system must not stand in for ours.
	rm -f "$root$pkglibdir"/synchro* "$root$sharedir"/extension/synchro*
	printf '%s\n' "$stamp" >"$root/stamp"
fi
ln -sfn "$major" "$base/current"
printf '%s\n' "$root"
