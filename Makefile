# Steelyard. `make help` tells the targets; README.md tells the rest.
SHELL := /bin/bash
VERSION := $(shell cat VERSION)
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON ?= $(shell test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)
VENV := build/venv
SLURM_INC ?= /usr/include

# Ours are in SY_CFLAGS, so that `make CFLAGS=-O3` keeps them.
CFLAGS ?= -O2 -g
SY_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DSY_VERSION='"$(VERSION)"' -Iplugins/node -fPIC \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wconversion \
	-Wvla $(WERROR)

NODE_SRC := $(filter-out plugins/node/main.c plugins/node/cmd_%.c,$(wildcard plugins/node/*.c))
NODE_OBJ := $(NODE_SRC:%.c=build/obj/%.o)
PROGRAM_OBJ := $(patsubst %.c,build/obj/%.o,$(wildcard plugins/node/main.c plugins/node/cmd_*.c))
SLURM_OBJ := $(patsubst %.c,build/obj/%.o,$(wildcard plugins/slurm/*.c))
HAVE_SLURM := $(wildcard $(SLURM_INC)/slurm/spank.h)
C_TESTS := $(patsubst tests/c/%.c,build/test/%,$(wildcard tests/c/test_*.c))
# A benchmark's own programs: jobscripts/NAME/PROGRAM.c becomes build/bin/steelyard-PROGRAM.
BENCH_SRC := $(wildcard jobscripts/*/*.c)
BENCH_BIN := $(foreach s,$(BENCH_SRC),build/bin/steelyard-$(basename $(notdir $(s))))

.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# --- build ------------------------------------------------------------------------------------

all: build/bin/steelyard-node $(BENCH_BIN) $(if $(HAVE_SLURM),build/lib/spank_steelyard.so)  ## the C parts, into build/
	@$(if $(HAVE_SLURM),,echo "note: no slurm/spank.h under $(SLURM_INC) (Debian: libslurm-dev): the Slurm plugin is left out")

build/obj/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) $(CPPFLAGS) -I$(SLURM_INC) -MMD -MP -c -o $@ $<

build/lib/libsteelyard.a: $(NODE_OBJ)
	@mkdir -p $(@D)
	rm -f $@ && $(AR) rcs $@ $^

build/bin/steelyard-node: $(PROGRAM_OBJ) build/lib/libsteelyard.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljansson

# Only what the version script names is visible: slurmstepd must not see our helpers, nor we its.
build/lib/spank_steelyard.so: $(SLURM_OBJ) build/lib/libsteelyard.a plugins/slurm/spank_steelyard.map
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,--version-script=plugins/slurm/spank_steelyard.map \
		-o $@ $(SLURM_OBJ) build/lib/libsteelyard.a -ljansson

define BENCH_RULE
build/bin/steelyard-$(basename $(notdir $(1))): $(1) VERSION
	@mkdir -p $$(@D)
	$$(CC) $$(SY_CFLAGS) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$<
endef
$(foreach s,$(BENCH_SRC),$(eval $(call BENCH_RULE,$(s))))

build/test/%: tests/c/%.c build/lib/libsteelyard.a
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) -Itests/c -I$(SLURM_INC) -MMD -MP -MF build/obj/$*.d $(LDFLAGS) -o $@ $< build/lib/libsteelyard.a -ljansson -ldl

-include $(wildcard build/obj/*.d build/obj/plugins/*/*.d)

clean:  ## remove everything that was built, the virtual environment too
	rm -rf build

.PHONY: help all clean
