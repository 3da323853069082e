#!/bin/sh
# Installs what a build needs and this Debian or Ubuntu lacks; does nothing, quickly, when all of it is there.
set -eu
: "${PG_CONFIG:=pg_config}" "${GO:=go}"

# The Go that builds us where the distribution's is too old.
toolchain=go1.26.8

apt() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o=Dpkg::Use-Pty=0 "$@" >>.build/deps.log 2>&1 ||
	{ tail -n 20 .build/deps.log >&2; echo "apt-get $1 failed; see .build/deps.log" >&2; exit 1; }; }

# Installs packages, refreshing the package lists once.
updated=
install() {
	if [ "$(id -u)" != 0 ]; then
		echo "missing: $*; install them, or run this as root" >&2
		exit 1
	fi
	command -v apt-get >/dev/null || { echo "missing: $*; install their equivalents on this system" >&2; exit 1; }
	echo "installing $*"
	[ -n "$updated" ] || { apt update; updated=yes; }
	apt install -y --no-install-recommends "$@"
}

has() { command -v "$1" >/dev/null; }

# go_is_new_enough GO: at least the version that go.mod asks for.
go_is_new_enough() {
	has "$1" || return 1
	want=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	have=$("$1" env GOVERSION 2>/dev/null | sed -n 's/^go\([0-9]*\.[0-9]*\).*/\1/p')
	[ -n "$have" ] && [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" = "$want" ]
}

# The distribution's Go, however old, can fetch a newer one: the module proxy serves toolchains as modules. A module cache
# keeps no execute bits, so this makes a copy of it.
install_go() {
	has go || install golang-go
	echo "fetching $toolchain"
	arch=$(go env GOARCH)
	module=golang.org/toolchain@v0.0.1-$toolchain.linux-$arch
	tmp=$(mktemp -d)
	(cd "$tmp" && printf 'module fetch\n' >go.mod && go mod download "$module")
	dir=$(go env GOMODCACHE)/$module
	rm -rf .build/go "$tmp"
	cp -r "$dir" .build/go
	chmod -R u+w .build/go
	chmod -R a+x .build/go/bin .build/go/pkg/tool
	hash -r # the shell remembers where it found the old one
}

mkdir -p .build
missing=
has gcc || missing="$missing gcc"
has git || missing="$missing git"
[ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev"
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
[ -z "$missing" ] || install $missing

# Server, build rules and headers come from packages that may be there one without another.
has_postgres() {
	has "$PG_CONFIG" && [ -x "$("$PG_CONFIG" --bindir)/postgres" ] && [ -e "$("$PG_CONFIG" --pgxs)" ] &&
		[ -e "$("$PG_CONFIG" --includedir-server)/postgres.h" ]
}
if ! has_postgres; then
	[ "$PG_CONFIG" = pg_config ] || { echo "no PostgreSQL server with headers at PG_CONFIG=$PG_CONFIG" >&2; exit 1; }
	# The distribution's package would start a cluster of its own, which nobody asked for.
	if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
		mkdir -p /etc/postgresql-common
		echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
	fi
	install postgresql
	major=$(ls /usr/lib/postgresql | sort -n | tail -n 1)
	install "postgresql-server-dev-$major" libpq-dev
	has_postgres || { echo "no PostgreSQL server with headers at $PG_CONFIG" >&2; exit 1; }
fi

go_is_new_enough "$GO" || install_go
go_is_new_enough "$GO" || { echo "no Go that is new enough: $(command -v "$GO")" >&2; exit 1; }
