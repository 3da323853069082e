# Everything a developer types. The work is in pgxs/ (build), internal/pgtest (clusters) and the Go packages.
# PG_CONFIG chooses the PostgreSQL (15 to 18) that everything is built for and tested with.
SHELL     := /bin/sh
PG_CONFIG ?= pg_config
GO        ?= go
PKG       ?= ./...
SOAK      ?= 30m
export PG_CONFIG
export PATH := $(CURDIR)/.build/go/bin:$(PATH)

MODULE := $(MAKE) --no-print-directory -f pgxs/module.mk
PGTEST := .build/pgtest

.DEFAULT_GOAL := help
.PHONY: help deps build install uninstall up down demo test check regress isolation test-go soak bench image generate clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install missing Debian / Ubuntu packages (needs root only if something is missing)
	@sh pgxs/deps.sh

build: deps ## build everything and install it into a private PostgreSQL tree, .build/pgroot
	@sh pgxs/build.sh

install: ## install the extension into the PostgreSQL of PG_CONFIG
	@$(MODULE) install

uninstall: ## remove the extension from the PostgreSQL of PG_CONFIG
	@$(MODULE) uninstall

up: build ## start a private cluster, worker and shim; write .run/env (repeating it is harmless)
	@$(PGTEST) up

down: ## stop and remove what "make up" started
	@if [ -d .run ]; then $(PGTEST) down; fi

demo: build ## load real data, sync it and verify every digest
	@$(GO) run ./examples/debian/demo

test: build ## every check and test, with a summary
	@sh pgxs/test.sh

check: ## formatting and go vet
	@sh pgxs/check.sh

regress: build ## SQL tests: test/regress/sql (FILES="a b" picks some)
	@$(PGTEST) regress $(FILES)

isolation: build ## race tests: test/regress/specs (FILES="a b" picks some)
	@$(PGTEST) isolation $(FILES)

test-go: build ## Go tests (PKG=./worker/... and ARGS=-v pick some)
	@$(GO) test -buildvcs=false -count=1 $(ARGS) $(PKG)

soak: build ## random tests for a long time (SOAK=30m; SEED=n repeats one run)
	@SYNCHRO_SOAK=$(SOAK) $(GO) test -buildvcs=false -count=1 -v -timeout 0 -run 'Random' ./test/model $(if $(SEED),-rapid.seed=$(SEED))

bench: build ## measure, print ratios, write bench/results.json and bench/*.svg
	@$(GO) run ./test/bench

image: ## build the FROM scratch image of "synchro serve"
	@sh pgxs/image.sh

generate: ## regenerate checked-in generated files
	@$(GO) generate ./...

clean: down ## stop the development stack and remove everything built
	@$(MODULE) clean >/dev/null 2>&1 || true
	@if [ -L .build/pgroot ]; then rm -rf "$$(readlink .build/pgroot)"; fi
	@rm -rf .build .run
