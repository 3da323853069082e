#!/bin/sh
# Formatting and static checks of the Go sources.
set -eu
: "${GO:=go}"
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'not gofmt formatted:\n%s\n' "$unformatted" >&2
	exit 1
fi
$GO vet -buildvcs=false ./...
