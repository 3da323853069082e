# The PGXS module: synchro.so, the install script, the Go core and its process host.
# Used through the root Makefile; "make -f pgxs/module.mk install PG_CONFIG=..." works as well.
PG_CONFIG ?= pg_config
GO        ?= go

VERSION    := $(shell sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" synchro.control)
SCRIPT     := .build/sql/synchro--$(VERSION).sql
PG_STAMP   := .build/pg_config.stamp
C_HEADERS  := $(wildcard extension/*.h cgo/*.h)
CORE       := .build/synchro_core.so
CORE_HOST  := .build/synchro_core_host

MODULE_big = synchro
OBJS       = $(patsubst %.c,%.o,$(sort $(wildcard extension/*.c)))
EXTENSION  = synchro
DATA       = $(wildcard sql/updates/synchro--*--*.sql)
DATA_built = $(SCRIPT)
PG_CPPFLAGS = -I$(CURDIR)/extension -I$(CURDIR)/cgo
PG_CFLAGS  = -Wno-declaration-after-statement
SHLIB_LINK = -lcrypto -ldl -lpthread

# PGXS takes the directory of the first makefile for the source directory.
override srcdir := .
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Objects of another PostgreSQL major or of an older header must never be linked.
$(OBJS) $(OBJS:.o=.bc): $(C_HEADERS) $(PG_STAMP)

$(PG_STAMP): FORCE
	@mkdir -p $(@D)
	@{ $(PG_CONFIG) --version; $(PG_CONFIG) --includedir-server; } | cmp -s - $@ || \
	  { $(PG_CONFIG) --version; $(PG_CONFIG) --includedir-server; } > $@

$(SCRIPT): sql/install.list $(shell sed 's/\#.*//; /^[[:space:]]*$$/d; s,^,sql/,' sql/install.list) synchro.control pgxs/install_script.sh
	@mkdir -p $(@D)
	@rm -f $(@D)/synchro--*.sql
	sh pgxs/install_script.sh > $@.tmp && mv $@.tmp $@

# The Go core: loaded by a host process, never by the postmaster. Go decides itself what is up to date.
ifneq ($(wildcard cgo/*.go),)
all: $(CORE)
CORE_FILES += $(CORE)
$(CORE): FORCE
	CGO_ENABLED=1 $(GO) build -buildvcs=false -buildmode=c-shared -tags netgo,osusergo \
	  -ldflags "-s -w -X runtime.godebugDefault=asyncpreemptoff=1" -o $@ ./cgo
	@rm -f .build/synchro_core.h
endif

ifneq ($(wildcard extension/host/main.c),)
all: $(CORE_HOST)
CORE_FILES += $(CORE_HOST)
$(CORE_HOST): $(wildcard extension/host/*.c extension/host/*.h) $(C_HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=gnu99 -O2 -g -Wall -Wextra -Wmissing-prototypes -Icgo -Iextension -o $@ $(wildcard extension/host/*.c) -ldl -lpthread
endif

ifneq ($(CORE_FILES),)
install: install-core
uninstall: uninstall-core
endif

install-core: $(CORE_FILES) installdirs
	$(INSTALL_PROGRAM) $(CORE_FILES) '$(DESTDIR)$(pkglibdir)/'

uninstall-core:
	rm -f $(addprefix '$(DESTDIR)$(pkglibdir)'/, $(notdir $(CORE_FILES)))

.PHONY: FORCE install-core uninstall-core
FORCE:
