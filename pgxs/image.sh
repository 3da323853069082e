#!/bin/sh
# Builds the container image of "synchro serve"; IMAGE names it.
set -eu
: "${GO:=go}" "${IMAGE:=synchro:$(sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" synchro.control)}"
command -v docker >/dev/null || { echo "make image needs docker" >&2; exit 1; }
# Only what goes into the image is the build context.
context=.build/image
rm -rf "$context"
mkdir -p "$context"
CGO_ENABLED=0 $GO build -buildvcs=false -trimpath -ldflags "-s -w" -o "$context/synchro" ./cmd/synchro
cp /etc/ssl/certs/ca-certificates.crt deploy/Dockerfile "$context/"
docker build -q -t "$IMAGE" "$context"
docker image inspect --format '{{.Size}} bytes' "$IMAGE"
