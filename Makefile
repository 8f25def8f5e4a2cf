# Steelyard. `make help` tells the targets; README.md tells the rest. Meson builds the C parts
# (meson.build, setup/build.sh), tests/run.sh runs the tests, packaging/install.sh puts things into place.
SHELL := /bin/bash
PYTHON ?= $(shell test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)
VENV := build/venv
SLURM_INC ?= /usr/include
export SLURM_INC

.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: setup  ## what does a virtual node cost, and data 20 ms away? demo/virtual.html, demo/distance.html
	@$(VENV)/bin/python -m steelyard.wrappers.commands.demo
	@setup/say_path.sh $(abspath $(VENV)) again

BUILD = setup/build.sh $(if $(filter-out /usr/include,$(SLURM_INC)),-Dslurm_inc=$(SLURM_INC)) $(MESON_OPTIONS)

# Into build/bin, build/lib, build/man. CC, CFLAGS and LDFLAGS count; MESON_OPTIONS=-Dmpi=disabled
all:
	@$(BUILD)

# clang takes longer to come than much of the rest: the demo does without.
KVM = $(if $(wildcard /sys/module/kvm_intel /sys/module/kvm_amd),kvm)
PACKAGES = run bpf $(KVM)
demo: PACKAGES = run $(KVM)
packages:
	@setup/packages.sh $(PACKAGES)

packages-%:
	@setup/packages.sh $(PACKAGES_$*)
PACKAGES_test := run bpf test
PACKAGES_slow := run bpf test kvm
PACKAGES_bench := bench
PACKAGES_deb := bpf deb
PACKAGES_rpm := run bpf rpm
PACKAGES_dist := run bpf
PACKAGES_wheel := run

# The environment is made anew when what it is made from changes. pip would compile the tests of all
# packages, too, and on one processor. Two of these at once would spoil each other's.
VENV_FROM = setup.cfg setup.py pyproject.toml VERSION
define make_venv
	@mkdir -p build/src && ln -sfn ../.. build/src/steelyard
	@setup/step.sh '2/3 Python packages into $(VENV)' flock build/src $(SHELL) -ec 'echo venv; $(PYTHON) -m venv $(VENV); \
		$(VENV)/bin/pip install --disable-pip-version-check --progress-bar off --no-compile -e ".$(1)"; \
		$(VENV)/bin/python setup/editable_pth.py $(CURDIR) $(VENV)/lib/*/site-packages/__editable__.steelyard-*.pth; \
		echo compileall; $(VENV)/bin/python -m compileall -q -j0 -x "/tests?/" $(VENV)/lib facts jobscripts analysis wrappers || true'
	@touch $(VENV)/.ready
endef

$(VENV)/.ready: $(VENV_FROM)
	$(call make_venv)

# What the tests need takes longer to come than all the rest: the demo does without.
$(VENV)/.test: $(VENV_FROM)
	$(call make_venv,[test$(,)lint])
	@touch $@
, := ,

# Packages first: what they bring decides what is built.
setup: packages
	@$(MAKE) --no-print-directory -s $(VENV)/.ready
	@setup/step.sh '3/3 C parts into build/' $(BUILD)
	@setup/say_path.sh $(abspath $(VENV))

setup-test: packages-test
	@$(MAKE) --no-print-directory -s $(VENV)/.test
	@setup/step.sh '3/3 C parts into build/' $(BUILD)

test: setup-test  ## set up, then what every change must pass: units, one real cluster, C, bats
	@tests/run.sh test

test-slow: packages-slow setup-test  ## virtual nodes, demo, containers, benchmarks, torture, four compilers
	@tests/run.sh slow

check-fast: all $(VENV)/.test  ## what one runs all the time: units without a subprocess, C, ruff, one compiler
	@tests/run.sh fast

lint: $(VENV)/.test  ## ruff, mypy, shellcheck, shfmt, clang-format, gcc with -Werror
	@tests/lint.sh

docs: $(VENV)/.test all man  ## what pages have from the code, the pages as a site, man pages
	@for list in findings.registry papers.jungels2012.measurement_findings; do \
		$(VENV)/bin/python -P -m steelyard.analysis.$$list || exit; done
	@$(VENV)/bin/python -P docs/tables.py
	@$(VENV)/bin/python -P docs/demo_picture.py
	@$(VENV)/bin/python -P -m sphinx -q -W --keep-going -c docs/site -d build/site/doctrees docs build/site/html
	@echo "build/site/html/index.html"

# Of `steelyard` and its commands; those of the programs come with the build.
man: $(VENV)/.ready
	@$(VENV)/bin/python -c 'import argparse_manpage' 2>/dev/null || $(VENV)/bin/pip install -q --disable-pip-version-check -e '.[man]'
	@$(VENV)/bin/python -P -m steelyard.wrappers.commands.man_pages build/man/commands

bench: setup  ## make bench BENCH=sampler: a benchmark of Steelyard itself
	@test -f "bench/$(BENCH).py" || { echo "usage: make bench BENCH=NAME, one of: $(basename $(notdir $(wildcard bench/*.py)))" >&2; exit 2; }
	@test "$(BENCH)" != run_against_hyperfine || setup/packages.sh bench
	@$(VENV)/bin/pip install -q --disable-pip-version-check -e '.[bench]'
	@$(VENV)/bin/python bench/$(BENCH).py

install-slurm: all  ## the plugin for a real cluster: PREFIX=/usr/local DESTDIR=
install-torque: all  ## prologues and epilogues for a node with pbs_mom: PBS_HOME=/var/spool/torque PREFIX=/usr/local
install-openpbs: all  ## the hook for OpenPBS; RUN=yes tells the server, too

# packaging/install.sh lists more components.
install-%: all
	@packaging/install.sh $*
uninstall-%:
	@packaging/install.sh uninstall-$*

KIND ?= dist
package: packages-$(KIND) $(if $(filter dist,$(KIND)),all man)  ## for nodes without a compiler: KIND=dist (a tar), deb, rpm; KIND=wheel for users
	@MAKEFLAGS= PYTHON=$(abspath $(VENV))/bin/python packaging/$(KIND)/$(KIND).sh

clean:  ## remove everything that was built, the virtual environment too
	rm -rf build

.PHONY: help demo all packages setup setup-test test test-slow check-fast lint docs man bench package clean
