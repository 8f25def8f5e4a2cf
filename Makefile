# Steelyard. `make help` tells the targets; README.md tells the rest.
SHELL := /bin/bash
VERSION := $(shell cat VERSION)
PREFIX ?= /usr/local
DESTDIR ?=
RECORD_DIR ?= /var/lib/steelyard/records
# Where examples of configuration go.
DOC_DIR ?= $(PREFIX)/share/doc/steelyard
PBS_HOME ?= /var/spool/torque
CONFIG ?= /etc/steelyard/pbs.conf
PYTHON ?= $(shell test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)
VENV := build/venv
SLURM_INC ?= /usr/include

# Ours are in SY_CFLAGS, so that `make CFLAGS=-O3` keeps them.
CFLAGS ?= -O2 -g
SY_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DSY_VERSION='"$(VERSION)"' -Iplugins/node -I. -fPIC \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wconversion \
	-Wvla $(WERROR)

# The commands stay out of the library, which every other program and plugin is linked with.
PROGRAM_SRC := $(wildcard plugins/node/program/main.c plugins/node/program/cmd_*.c)
NODE_SRC := $(filter-out $(PROGRAM_SRC),$(wildcard plugins/node/*/*.c plugins/node/*/*/*.c))
NODE_OBJ := $(NODE_SRC:%.c=build/obj/%.o)
PROGRAM_OBJ := $(PROGRAM_SRC:%.c=build/obj/%.o)
SLURM_OBJ := $(patsubst %.c,build/obj/%.o,$(wildcard plugins/slurm/*.c))
HAVE_SLURM := $(wildcard $(SLURM_INC)/slurm/spank.h)
# Only `steelyard publish` wants it, and it is linked with libslurm, which nodes need not have.
HAVE_SLURMDB := $(if $(HAVE_SLURM),$(shell echo 'int main(void) { return 0; }' | $(CC) $(LDFLAGS) -x c -o /dev/null - -lslurm 2>/dev/null && echo yes))
# The wrapper alone does not do: on Debian mpicc comes with openmpi-bin, mpi.h with libopenmpi-dev.
# Only steelyard-bpf, which puts a program into the kernel, is linked with libbpf; clang compiles for it.
HAVE_BPF := $(shell printf "\#include <bpf/libbpf.h>\n" | $(CC) -E -x c - >/dev/null 2>&1 && clang -target bpf -x c -c -o /dev/null /dev/null 2>/dev/null && echo yes)
# Who was built for another layout of its maps finds none of them.
BPF_LAYOUT := plugins/node/bpf/layout.h $(wildcard plugins/bpf/*.bpf.[ch])
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m)))
KERNEL_ASM := $(wildcard /usr/include/*-linux-gnu)
BPF_HASH := $(firstword $(shell cat $(BPF_LAYOUT) | cksum))
HAVE_MPICC := $(shell printf "\#include <mpi.h>\n" | mpicc -E -x c - >/dev/null 2>&1 && echo yes)
C_TESTS := $(patsubst tests/c/%.c,build/test/%,$(wildcard tests/c/test_*.c))
# A benchmark's own programs: jobscripts/NAME/PROGRAM.c becomes build/bin/steelyard-PROGRAM.
BENCH_SRC := $(wildcard jobscripts/*/*.c)
BENCH_BIN := $(foreach s,$(BENCH_SRC),build/bin/steelyard-$(basename $(notdir $(s))))

.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# --- build ------------------------------------------------------------------------------------

all: build/bin/steelyard-node build/bin/steelyard-left build/openpbs/steelyard_hook.py build/bin/steelyard-time build/lib/libsteelyard-uml.so build/lib/libsteelyard-samples.so $(BENCH_BIN) $(if $(HAVE_BPF),build/bin/steelyard-bpf) $(if $(HAVE_SLURM),build/lib/spank_steelyard.so $(if $(HAVE_SLURMDB),build/bin/steelyard-slurmdb)) $(if $(HAVE_MPICC),npb mpiprof mpitest iotest)  ## the C parts, into build/
	@$(if $(HAVE_SLURM),,echo "note: no slurm/spank.h under $(SLURM_INC) (Debian: libslurm-dev): the Slurm plugin is left out")
	@$(if $(HAVE_BPF),,echo "note: no libbpf or no clang (Debian: libbpf-dev, clang): steelyard-bpf is left out, the kernel does not count what jobs use")
	@$(if $(HAVE_PYTHON),,echo "note: no $(PYTHON): install-… brings no man pages")
	@$(if $(HAVE_MPICC),,echo "note: no mpicc (Debian: libopenmpi-dev): the NAS Parallel Benchmarks and the profiler of MPI programs are left out")

npb:
	@$(MAKE) --no-print-directory -s -C jobscripts/npb MPICC=mpicc

mpiprof:
	@$(MAKE) --no-print-directory -s -C plugins/mpi MPICC=mpicc

mpitest:
	@$(MAKE) --no-print-directory -s -C jobscripts/mpi MPICC=mpicc

iotest:
	@$(MAKE) --no-print-directory -s -C jobscripts/ior MPICC=mpicc

.PHONY: mpitest iotest

build/obj/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) $(CPPFLAGS) -I$(SLURM_INC) -MMD -MP -c -o $@ $<

# q, not r: files of two rooms may have the same name, and r would put one in the other's place.
build/lib/libsteelyard.a: $(NODE_OBJ)
	@mkdir -p $(@D)
	rm -f $@ && $(AR) qcs $@ $^

# Bound at the start: else the linker and the tables of every library stay in the sampler's memory.
build/bin/steelyard-node: $(PROGRAM_OBJ) build/lib/libsteelyard.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-z,now -o $@ $^ -ljansson -lmnl -ldl -lm

# Only what the version script names is visible: slurmstepd must not see our helpers, nor we its.
build/lib/spank_steelyard.so: $(SLURM_OBJ) build/lib/libsteelyard.a plugins/slurm/spank_steelyard.map
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,--version-script=plugins/slurm/spank_steelyard.map \
		-o $@ $(SLURM_OBJ) build/lib/libsteelyard.a -ljansson -lmnl -ldl -lm

# Goes into containers, whose images may have any C library: static, where ours can be had so.
build/bin/steelyard-time: plugins/time/time.c build/lib/libsteelyard.a
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) $(LDFLAGS) -static -o $@ $^ 2>build/static.log || $(CC) $(SY_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^

build/bin/steelyard-slurmdb: plugins/slurmdb/slurmdb.c build/lib/libsteelyard.a
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) -I$(SLURM_INC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lslurm -ljansson

build/obj/plugins/node/bpf/place.o: SY_CFLAGS += -DSY_BPF_HASH=$(BPF_HASH)
build/obj/plugins/node/bpf/place.o: $(BPF_LAYOUT)

build/bpf/job_usage.bpf.o: $(BPF_LAYOUT) plugins/bpf/kernel_types.h
	@mkdir -p $(@D)
	clang -std=gnu11 -O2 -g -Wall -Werror -target bpf -mcpu=v1 -D__TARGET_ARCH_$(BPF_ARCH) -Iplugins/node $(KERNEL_ASM:%=-I%) -c -o $@ plugins/bpf/job_usage.bpf.c

# The last one ends it.
build/bin/steelyard-left: jobscripts/lib/launcher_left_words.sh jobscripts/lib/launcher_left.sh
	@mkdir -p $(@D)
	cat $^ | install -m 0755 /dev/stdin $@

build/bin/steelyard-bpf: $(wildcard plugins/bpf/*.c plugins/bpf/*.h) build/bpf/job_usage.bpf.o build/lib/libsteelyard.a
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $(filter-out %.bpf.c,$(filter plugins/%.c,$^)) build/lib/libsteelyard.a -lbpf -ljansson

# Preloaded into the virtual nodes of the throwaway cluster. Moved into place: one that runs keeps its own.
build/lib/libsteelyard-uml.so: plugins/uml/uml_registers.c
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) $(LDFLAGS) -shared -o $@.part $< -ldl && mv -f $@.part $@

# Loaded by `steelyard collect`, at most once for as long as it runs: moved into place, too.
build/lib/libsteelyard-samples.so: plugins/reader/samples_reader.c plugins/reader/samples_reader.h
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) $(LDFLAGS) -fvisibility=hidden -shared -o $@.part $< && mv -f $@.part $@

define BENCH_RULE
build/bin/steelyard-$(basename $(notdir $(1))): $(1) $(wildcard $(dir $(1))*.h) VERSION
	@mkdir -p $$(@D)
	$$(CC) $$(SY_CFLAGS) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$<
endef
$(foreach s,$(BENCH_SRC),$(eval $(call BENCH_RULE,$(s))))
build/bin/steelyard-stream: CFLAGS += -O3 -fopenmp

build/test/%: tests/c/%.c build/lib/libsteelyard.a
	@mkdir -p $(@D)
	$(CC) $(SY_CFLAGS) $(CFLAGS) -Itests/c -I$(SLURM_INC) -MMD -MP -MF build/obj/$*.d $(LDFLAGS) -rdynamic -o $@ $< build/lib/libsteelyard.a -ljansson -lmnl -ldl -lm

-include $(wildcard build/obj/*.d $(NODE_OBJ:.o=.d) $(PROGRAM_OBJ:.o=.d) $(SLURM_OBJ:.o=.d))

# --- man pages of programs, each from its own help ---------------------------------------------

# Whom root and daemons call: section 8.
ADMIN_PROGRAMS := steelyard-node steelyard-left steelyard-bpf steelyard-slurmdb steelyard-forward steelyard-redfish steelyard-torque
NODE_PROGRAMS := steelyard-node steelyard-left $(if $(HAVE_BPF),steelyard-bpf)
MPI_PROGRAMS := steelyard-npb steelyard-mpiprof steelyard-mpitest steelyard-iotest
BENCH_PROGRAMS := steelyard-time $(notdir $(BENCH_BIN)) $(if $(HAVE_MPICC),$(MPI_PROGRAMS))
HAVE_PYTHON := $(shell command -v $(PYTHON))
page = build/man/$(1).$(if $(filter $(1),$(ADMIN_PROGRAMS)),8,1)
pages = $(if $(HAVE_PYTHON),$(foreach program,$(1),$(call page,$(program))))
ALL_PAGES := $(call pages,$(NODE_PROGRAMS) $(BENCH_PROGRAMS) $(if $(HAVE_SLURMDB),steelyard-slurmdb) steelyard-forward steelyard-redfish steelyard-torque)
MAKE_PAGE = $(PYTHON) setup/man_of_help.py $< $@

build/man/%.8: build/bin/% setup/man_of_help.py VERSION
	@$(MAKE_PAGE)
build/man/%.1: build/bin/% setup/man_of_help.py VERSION
	@$(MAKE_PAGE)
build/man/steelyard-forward.8: plugins/spool/forward.sh setup/man_of_help.py VERSION
	@$(MAKE_PAGE)
build/man/steelyard-redfish.8: plugins/redfish/steelyard_redfish.py setup/man_of_help.py VERSION
	@$(MAKE_PAGE)
build/man/steelyard-torque.8: plugins/torque/steelyard-torque.sh setup/man_of_help.py VERSION
	@$(MAKE_PAGE)
$(MPI_PROGRAMS:%=build/bin/%): build/bin/steelyard-%: | % ;

# --- set-up -----------------------------------------------------------------------------------

# clang takes longer to come than much of the rest: the demo does without.
KVM = $(if $(wildcard /sys/module/kvm_intel /sys/module/kvm_amd),kvm)
PACKAGES = run bpf $(KVM)
demo: PACKAGES = run $(KVM)
packages:
	@setup/packages.sh $(PACKAGES)

packages-test:
	@setup/packages.sh run bpf test

packages-docker:
	@setup/packages.sh docker

packages-glusterfs:
	@setup/packages.sh glusterfs

packages-deb:
	@setup/packages.sh bpf deb

packages-rpm:
	@setup/packages.sh run bpf rpm

packages-bench:
	@setup/packages.sh bench

# The environment is made anew when what it is made from changes. pip would compile the tests of all
# packages, too, and on one processor. Two of these at once would spoil each other's.
VENV_FROM = setup.cfg setup.py pyproject.toml VERSION
define make_venv
	@mkdir -p build/src && ln -sfn ../.. build/src/steelyard
	@setup/step.sh '2/3 Python packages into $(VENV)' flock build/src $(SHELL) -ec 'echo venv; $(PYTHON) -m venv $(VENV); \
		$(VENV)/bin/pip install --disable-pip-version-check --progress-bar off --no-compile -e ".$(1)"; \
		$(VENV)/bin/python setup/light_start.py $(CURDIR) $(VENV)/lib/*/site-packages/__editable__.steelyard-*.pth; \
		echo compileall; $(VENV)/bin/python -m compileall -q -j0 -x "/tests?/" $(VENV)/lib facts jobscripts analysis wrappers || true'
	@touch $(VENV)/.ready
endef

$(VENV)/.ready: $(VENV_FROM)
	$(call make_venv)

# What the tests need takes longer to come than all the rest: the demo does without.
TEST_EXTRAS = [test,lint]
$(VENV)/.test: $(VENV_FROM)
	$(call make_venv,$(TEST_EXTRAS))
	@touch $@

# A second make, because slurm/spank.h may have come with the packages just now.
setup: packages $(VENV)/.ready  ## Debian packages, virtual environment, C parts
	@setup/step.sh '3/3 C parts into build/' $(MAKE) --no-print-directory -j$(shell nproc) all
	@setup/say_path.sh $(abspath $(VENV))

demo: setup  ## what does a virtual node cost, and data 20 ms away? demo/virtual.html, demo/distance.html
	@$(VENV)/bin/python -m steelyard.wrappers.commands.demo
	@setup/say_path.sh $(abspath $(VENV)) again

# --- tests ------------------------------------------------------------------------------------

# More workers than processors, since tests wait as much as they compute, but few enough for the
# memory of a login node.
WORKERS ?= $(shell n=$$(($$(nproc) * 3 / 2)); echo $$((n < 8 ? n : 8)))
PYTEST = $(VENV)/bin/python -P -m pytest -q --durations=20
SPREAD = -n $(WORKERS) --dist worksteal
# What real clusters, meters and networks do on a machine that others use, too: a test that fails has one
# more try, and is told (tests/conftest.py). AGAIN= takes that away.
AGAIN ?= --reruns 1
# Each worker, and each command of ours that a test starts, would compile our sources anew.
export PYTHONDONTWRITEBYTECODE =

# The tests of virtual nodes measure delays: nothing but one light group after another beside them.
# The cluster's other tests wait most of their time: beside the units. Those in containers do, too.
WITH_GUESTS = check-lab-guests check-docker-host lint failsafe check-c check-bats check-npb
WITH_UNITS = check-lab-nodes check-unit

# A second make, because slurm/spank.h may have come with the packages just now; pip waits for others.
test: packages-test  ## set up, then every check and test
	@$(MAKE) --no-print-directory -s $(VENV)/.test
	@setup/step.sh '3/3 C parts into build/' $(MAKE) --no-print-directory -j$(shell nproc) all
	@$(MAKE) --no-print-directory -s -j2 -Otarget groups TEST_GROUPS='$(WITH_GUESTS)'
	@$(MAKE) --no-print-directory -s -j2 -Otarget groups TEST_GROUPS='$(WITH_UNITS)'

groups: $(addprefix group-,$(TEST_GROUPS))

group-%:
	@tests/run_group.sh $* $(MAKE) --no-print-directory -s $(addprefix -f ,$(filter Makefile %.mk,$(MAKEFILE_LIST))) $*

check: check-c check-unit check-bats check-sanitize check-fuzz check-torture  ## every test that needs no cluster

check-fast: all $(C_TESTS) $(VENV)/.test  ## what one runs all the time: no cluster, no NPB, no bats, no slow tests
	@$(MAKE) --no-print-directory -s -j2 -Otarget groups TEST_GROUPS='check-unit-fast lint check-c'

check-unit-fast: all $(VENV)/.test
	$(PYTEST) $(SPREAD) -m 'not slow' tests/unit

check-unit: all $(VENV)/.test
	$(PYTEST) $(AGAIN) $(SPREAD) tests/unit

check-bats: all $(VENV)/.test
	tests/run_bats.sh tests/bats

check-c: all $(C_TESTS)  ## the C parts: parsers fed with recorded text, the plugin in a small host
	@tests/run_c.sh $(C_TESTS)

# Not in `make test`: every source is compiled once more, once for all three of these, by clang.
SANITIZED = $(MAKE) --no-print-directory -s -f Makefile -f tests/sanitized.mk

check-sanitize:  ## the C tests, the plugin in its host too, under AddressSanitizer and UBSan, spoilt input included
	@mkdir -p build/test
	@$(SANITIZED) -j$(shell nproc) sanitized-tests
	@$(SANITIZED) run-sanitized

FUZZ_S ?= 60
check-fuzz: $(VENV)/.ready  ## libFuzzer over every parser of what comes from outside, FUZZ_S=60 seconds in all
	@$(SANITIZED) -j$(shell nproc) sanitized-fuzzers
	@$(SANITIZED) run-fuzzers FUZZ_S=$(FUZZ_S)

TORTURE_S ?= 120
check-torture:  ## every allocation, open, write, sync, rename and fork made to fail once under the C tests and steelyard-node (TORTURE_S=120 seconds)
	@mkdir -p build/test
	@$(SANITIZED) -j$(shell nproc) sanitized-tests
	@$(SANITIZED) run-torture TORTURE_S=$(TORTURE_S)

check-npb: all  ## every NPB kernel, class S and W on several rank counts, verified
	@$(MAKE) --no-print-directory -s -C jobscripts/npb check

check-lab: check-lab-guests check-lab-nodes  ## the tests that go through a real throwaway Slurm cluster

# Halves that share nothing: `make -j2 check-lab` does both at once.
check-lab-guests: all $(VENV)/.test
	$(PYTEST) $(AGAIN) -m guests tests/lab

check-lab-nodes: all $(VENV)/.test
	$(PYTEST) $(AGAIN) -n 2 --dist loadfile -m 'not guests' tests/lab

# Not in `make test`, where it is asked of a few files: all of it, as an installed plugin does by default.
check-lab-counted: all $(VENV)/.test  ## check-lab-nodes with jobs counted by the kernel (as root, Linux 5.8 and later)
	STEELYARD_LAB_BPF=yes $(PYTEST) $(AGAIN) -n 2 --dist loadfile -m 'not guests' tests/lab

# Not in `make test`: half an hour. Four reports beside their papers are left in build/papers.
lab-papers: all $(VENV)/.test  ## four papers redone in small on virtual nodes, and their reports beside them (as root, half an hour)
	$(PYTEST) tests/papers
	@ls build/papers/*.html

# Not in `make test`: two minutes for each of two kinds.
check-containers: all $(VENV)/.test  ## one MPI program in systemd-nspawn's and in LXC's containers of two virtual nodes (as root)
	STEELYARD_LAB_LONG=yes $(PYTEST) -m guests tests/lab/test_launchers_across.py

# Not in `make test`: two packages of Debian's more. Two servers, each in a network of its own; their
# count of bytes written is what ours must come to.
lab-glusterfs: all packages-glusterfs $(VENV)/.test  ## the benchmarks of files on a GlusterFS of two servers, made for it (as root, a minute)
	$(PYTEST) -m glusterfs tests/glusterfs

# Not in `make test`: 500 MB to fetch, and Java.
check-spark: build/venv-spark/.ready  ## summary and top on a local Spark, the summary through docs/spark.sbatch, too, give DuckDB's answers (needs Java 17)
	SPARK_LOCAL_IP=127.0.0.1 build/venv-spark/bin/python -P -m pytest -q tests/spark

build/venv-spark/.ready: $(VENV)/.ready
	@java -version 2>/dev/null || { echo "check-spark: no java: apt-get install openjdk-17-jre-headless" >&2; exit 3; }
	$(PYTHON) -m venv build/venv-spark
	build/venv-spark/bin/pip install -q --disable-pip-version-check --use-pep517 -e '.[spark]' pytest || { \
		echo "check-spark: PySpark (500 MB) could not be installed: the reason is above; is PyPI or a mirror of it (PIP_INDEX_URL) within reach?" >&2; exit 3; }
	@touch $@

# Not in `make test`: 19 MB to fetch. Unpacked, not installed: Debian's package starts a daemon.
check-prometheus: build/prometheus/usr/bin/prometheus $(VENV)/.test  ## the metrics and every query of the Grafana dashboard through a real Prometheus
	$(PYTEST) tests/prometheus

build/prometheus/usr/bin/prometheus:
	@mkdir -p build/prometheus
	@cd build/prometheus && apt-get -q download prometheus && dpkg -x prometheus_*.deb . && rm -f prometheus_*.deb || { \
		echo "check-prometheus: Debian's package prometheus could not be fetched: apt-get update, or put prometheus and promtool on the PATH" >&2; exit 3; }

# Not in `make test`: Debian has no server of PBS. Nothing is built: run it as an ordinary user.
check-pbs:  ## through the Torque or OpenPBS that qsub on the PATH reaches, Steelyard on its nodes
	$(PYTEST) -p no:cacheprovider tests/pbs

# This machine's own Slurm in containers, which see its /usr: nothing is fetched, no image is built.
# Not every machine has Docker: then it says so (exit code 3), and is no failure.
check-docker-host: all $(VENV)/.ready  ## jobs of an ordinary user on this machine's Slurm in two clusters of five containers
	@CLUSTERS=2 tests/lab/docker/cluster.sh test host || { code=$$?; test $$code = 3 || exit $$code; }

# Not in `make test`: they need a Docker engine, and minutes for the first image (tests/lab/docker/README.md).
check-docker:  ## jobs of an ordinary user on a Slurm 22.05 of five containers (SUITE=trixie: 24.11, sid: 26.05)
	@tests/lab/docker/cluster.sh test $(or $(SUITE),bookworm)

test-matrix: all  ## check-docker on all three releases of Slurm, and check-layouts
	@failed=; for suite in bookworm trixie sid; do tests/lab/docker/cluster.sh test $$suite || failed+=" $$suite"; done; \
		tests/layouts/run.sh || failed+=" layouts"; \
		test -z "$$failed" || { echo "test-matrix: red:$$failed" >&2; exit 1; }

# Not in `make test`: half a minute a layout, and three minutes for the first folder of a release.
check-layouts: all  ## what the plugin makes of cgroup v1, v2 with job ids, with SLUIDs, and none, on three releases of Slurm (root)
	@tests/layouts/run.sh

# Not in `make test`: 70 MB of a newer kernel to fetch, once, and half a minute for each of two.
check-netem: all $(VENV)/.test  ## network conditions on this machine's UML kernel (6.1) and Debian's newest: seed, slot, ecn, four states, overhead, what chance did (root)
	$(PYTEST) tests/netem

# Not in `make test`: 60 MB of kernels to fetch, once, and two minutes for each of four.
packages-kernels:
	@setup/packages.sh kernels

check-kernels: packages-kernels all $(VENV)/.test  ## the kernel's count of known loads on Debian's kernels from 5.10 to the newest, emulated in software (root)
	$(PYTEST) tests/kernels

# Not in `make test`: 35 MB of a kernel with its modules to fetch, once, and some minutes of emulation.
check-counted: packages-kernels all  ## jobs of a Slurm on cgroup version 2 whose kernel counts them, on Debian 12's kernel, emulated in software (root)
	@tests/layouts/run.sh bookworm:v2-counted

# Not in `make test`: 133 MB of kernel sources to fetch, once.
check-powercap: all $(VENV)/.test  ## joules of jobs on a virtual node with a real powercap class device, against that device's own count (root)
	@tests/powercap/build.sh build/powercap
	STEELYARD_POWERCAP=$(CURDIR)/build/powercap $(PYTEST) tests/powercap

# Not in `make test`: packages of Debian's more, and a Debian of 100 MB to fetch, once.
packages-check-packages:
	@setup/packages.sh check-packages

check-dist: dist packages-check-packages  ## `make dist` laid down on a clean Debian with Slurm by the words of docs/admin.md, and a job run there (root, two minutes)
	@tests/packages/run.sh dist

check-deb: deb dist packages-check-packages  ## the same with the packages of `make deb` (root)
	@tests/packages/run.sh deb

check-rpm: rpm packages-check-packages  ## the packages of `make rpm` put into a root of their own, upgraded, removed: the files of the list, and nothing left (root)
	@tests/packages/rpm.sh

soak: all $(VENV)/.test  ## every way a job can die, with network conditions and without, 30 times each; 10,000 jobs in a row (an hour); an hour of check-fuzz, every call of check-torture
	@$(MAKE) --no-print-directory -s check-fuzz FUZZ_S=3600
	@$(MAKE) --no-print-directory -s check-torture TORTURE_S=all
	STEELYARD_FAULT_TRIES=30 $(VENV)/bin/python -P -m pytest -q tests/lab/test_netem_faults.py tests/lab/test_netem_host.py tests/lab/test_netem_guest_ends.py tests/lab/test_netem_two_nodes.py tests/lab/test_kills.py tests/unit/job/test_trouble.py
	STEELYARD_LAB_BPF=yes STEELYARD_FAULT_TRIES=30 $(VENV)/bin/python -P -m pytest -q tests/lab/test_kills.py
	STEELYARD_SOAK_TASKS=100000 $(VENV)/bin/python -P -m pytest -q tests/unit/bpf/test_soak.py
	STEELYARD_JOBS=$${STEELYARD_JOBS:-10000} $(VENV)/bin/python bench/jobs.py

# Test the tester: each runner must report a planted failure, else its green means nothing.
failsafe: all $(VENV)/.test  ## planted failures are seen by every test runner
	@tests/failsafe/run.sh

lint: $(VENV)/.test  ## ruff, mypy, shellcheck, shfmt, clang-format, gcc, clang, musl and aarch64 with -Werror
	@$(MAKE) --no-print-directory -s -f Makefile -f tests/lint.mk -j$(shell nproc) lint-all

docs: setup  ## write anew what pages have from the code: benchmarks, findings, tables of docs/formats.md
	@for room in jobscripts analysis.findings analysis.published; do \
		$(VENV)/bin/python -P -m steelyard.$$room.docs || exit; done
	@$(VENV)/bin/python -P docs/tables.py

site: $(VENV)/.test  ## the pages as a site, every link of theirs checked: build/site/html/index.html
	@$(VENV)/bin/python -P -m sphinx -q -W --keep-going -c docs/site -d build/site/doctrees docs build/site/html
	@echo "build/site/html/index.html"

man: $(VENV)/.ready $(ALL_PAGES)  ## man pages of steelyard, its commands and programs, from their help: build/man (install-… puts them in place)
	@$(VENV)/bin/python -c 'import argparse_manpage' 2>/dev/null || $(VENV)/bin/pip install -q --disable-pip-version-check -e '.[man]'
	@$(VENV)/bin/python -P -m steelyard.wrappers.commands.man build/man

$(VENV)/.bench: $(VENV)/.ready
	$(VENV)/bin/pip install -q --disable-pip-version-check -e '.[bench]'
	@touch $@

bench: setup $(VENV)/.bench $(if $(filter run,$(BENCH)),packages-bench)  ## make bench BENCH=sampler: a benchmark of Steelyard itself
	@test -f "bench/$(BENCH).py" || { echo "usage: make bench BENCH=NAME, one of: $(basename $(notdir $(wildcard bench/*.py)))" >&2; exit 2; }
	@$(VENV)/bin/python bench/$(BENCH).py

# --- install ----------------------------------------------------------------------------------

# Under another name first: jobs may start while this runs, and must find the old file or the new.
put = install -D -m 0755 $(1) $(2)/.$(notdir $(1)).new && mv -f $(2)/.$(notdir $(1)).new $(2)/$(notdir $(1))
put_programs = $(foreach program,$(1),$(call put,build/bin/$(program),$(DESTDIR)$(PREFIX)/libexec/steelyard) &&) true
put_pages = $(foreach page,$(call pages,$(1)),install -d -m 0755 $(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(page))) && \
	sed -e 's|@PREFIX@|$(PREFIX)|g' $(page) > $(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page)) &&) true

# A folder of records that is new has no readers of before: its jobs lie by day from the first on. Not
# in a package, which may be laid over one that is there; and where there is a spool the mark says that
# the file system is mounted.
record_folder = if test -d $(DESTDIR)$(RECORD_DIR); then :; else install -d -m 0755 $(DESTDIR)$(RECORD_DIR) && \
	if test -z "$(DESTDIR)" -a ! -d /var/spool/steelyard; then \
		: > $(RECORD_DIR)/.steelyard-records && echo "new: $(RECORD_DIR), where records lie by day (docs/records.md)"; fi; fi

SLURM_PROGRAMS = $(NODE_PROGRAMS) $(if $(HAVE_SLURMDB),steelyard-slurmdb)
install-slurm: all $(call pages,$(SLURM_PROGRAMS))  ## the plugin for a real cluster: PREFIX=/usr/local DESTDIR=
	@test -f build/lib/spank_steelyard.so || { echo "install-slurm: the plugin was not built: slurm/spank.h is not under $(SLURM_INC). Install Slurm's headers (Debian: libslurm-dev, RHEL: slurm-devel) or say make SLURM_INC=DIR." >&2; exit 3; }
	$(call put,build/lib/spank_steelyard.so,$(DESTDIR)$(PREFIX)/lib/steelyard)
	@$(call put_programs,$(SLURM_PROGRAMS))
	@$(call put_pages,$(SLURM_PROGRAMS))
	@$(record_folder)
	install -d -m 0755 $(DESTDIR)$(DOC_DIR)
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@RECORD_DIR@|$(RECORD_DIR)|g' \
		plugins/slurm/plugstack.conf.example > $(DESTDIR)$(DOC_DIR)/plugstack.conf.example
	install -m 0644 -t $(DESTDIR)$(DOC_DIR) plugins/node/netem/netem.conf.example
	@echo "Next: put the line of $(DOC_DIR)/plugstack.conf.example into plugstack.conf (docs/admin.md)."

build/torque/%: plugins/torque/%.sh facts/netem_keys.def FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@CONFIG@|$(CONFIG)|g' -e 's|@DOC_DIR@|$(DOC_DIR)|g' -e 's|@RECORD_DIR@|$(RECORD_DIR)|g' -e "s|@NETEM_KEYS@|$$(sed -nE 's/^(KEY|FORM)\([a-z_]+, "([a-z_]+)".*/\2/p' facts/netem_keys.def | xargs)|" $< > $@ && chmod 0755 $@

install-torque: install-torque-parts  ## prologues and epilogues for a node with pbs_mom: PBS_HOME=/var/spool/torque PREFIX=/usr/local
	@DESTDIR=$(DESTDIR) $(DESTDIR)$(PREFIX)/libexec/steelyard/steelyard-torque on $(PBS_HOME)
	@echo "Next: the line SUBMITFILTER on hosts where users submit (docs/admin-pbs.md)."

# What packages bring: switched on it is by steelyard-torque.
install-torque-parts: install-torque-login build/torque/pelog build/torque/steelyard-torque $(call pages,steelyard-torque)
	$(call put,build/torque/steelyard-torque,$(DESTDIR)$(PREFIX)/libexec/steelyard)
	@$(call put_pages,steelyard-torque)
	install -m 0755 plugins/torque/install.sh $(DESTDIR)$(PREFIX)/libexec/steelyard/torque-install
	install -D -m 0755 build/torque/pelog $(DESTDIR)$(PREFIX)/libexec/steelyard/.torque-sweep.new
	mv -f $(DESTDIR)$(PREFIX)/libexec/steelyard/.torque-sweep.new $(DESTDIR)$(PREFIX)/libexec/steelyard/torque-sweep
	@$(record_folder)

install-torque-login: all $(call pages,$(NODE_PROGRAMS)) build/torque/submitfilter  ## the submit filter of Torque, for a host where users submit
	@$(call put_programs,$(NODE_PROGRAMS))
	@$(call put_pages,$(NODE_PROGRAMS))
	install -m 0755 build/torque/submitfilter $(DESTDIR)$(PREFIX)/libexec/steelyard/.torque-submitfilter.new
	mv -f $(DESTDIR)$(PREFIX)/libexec/steelyard/.torque-submitfilter.new $(DESTDIR)$(PREFIX)/libexec/steelyard/torque-submitfilter
	install -d -m 0755 $(DESTDIR)$(DOC_DIR)
	sed -e 's|@RECORD_DIR@|$(RECORD_DIR)|g' plugins/torque/pbs.conf.example > $(DESTDIR)$(DOC_DIR)/pbs.conf.example
	install -m 0644 -t $(DESTDIR)$(DOC_DIR) plugins/node/netem/netem.conf.example

uninstall-torque:  ## gives a site its own prologues back; records and programs stay
	@plugins/torque/install.sh remove $(DESTDIR)$(PBS_HOME)/mom_priv
	rm -f $(DESTDIR)/etc/cron.d/steelyard-torque

FORCE:

# The hook itself goes through the server to every mom; steelyard-node and the file of netem do not.
OPENPBS_DIR = $(PREFIX)/share/steelyard/openpbs
install-openpbs: $(NODE_PROGRAMS:%=build/bin/%) $(call pages,$(NODE_PROGRAMS)) build/openpbs/steelyard_hook.py  ## the hook for OpenPBS; RUN=yes tells the server, too
	@$(call put_programs,$(NODE_PROGRAMS))
	@$(call put_pages,$(NODE_PROGRAMS))
	@$(record_folder)
	install -d -m 0755 $(DESTDIR)/etc/steelyard
	install -D -m 0644 -t $(DESTDIR)$(OPENPBS_DIR) build/openpbs/steelyard_hook.py plugins/node/netem/netem.conf.example
	install -m 0755 -t $(DESTDIR)$(OPENPBS_DIR) plugins/openpbs/qmgr.sh
	@test -e $(DESTDIR)/etc/steelyard/openpbs.json || sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@RECORD_DIR@|$(RECORD_DIR)|g' \
		plugins/openpbs/openpbs.json.example > $(DESTDIR)/etc/steelyard/openpbs.json
	@echo "steelyard-node belongs on every node and on the server's host. Then, once, as a manager of the server:"
	@$(if $(filter yes,$(RUN)),$(DESTDIR)$(OPENPBS_DIR)/qmgr.sh run,plugins/openpbs/qmgr.sh print $(OPENPBS_DIR))
	@echo "From then on no mom runs a mom_priv/epilogue of yours: the hook runs it, as mom did (docs/admin-pbs.md)."

uninstall-openpbs:  ## RUN=yes: out of the server; then the files
	@$(if $(filter yes,$(RUN)),plugins/openpbs/qmgr.sh remove,echo "First, as a manager of the server: $(OPENPBS_DIR)/qmgr.sh remove (or say RUN=yes)")
	rm -rf $(DESTDIR)$(OPENPBS_DIR)
	@echo "Left: steelyard-node, /etc/steelyard, the records: docs/admin-pbs.md"

build/openpbs/steelyard_hook.py: $(wildcard plugins/openpbs/*.py) plugins/openpbs/join.sh
	@mkdir -p $(@D)
	plugins/openpbs/join.sh > $@

install-programs: all $(call pages,$(NODE_PROGRAMS) $(BENCH_PROGRAMS))  ## steelyard-node and the benchmarks' programs into PREFIX/libexec/steelyard; man pages of `steelyard`, too, where `make man` was said
	@$(call put_programs,$(NODE_PROGRAMS) $(BENCH_PROGRAMS))
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/libexec/steelyard $(if $(HAVE_MPICC),$(wildcard build/bin/npb-* build/lib/libsteelyard-mpiprof.so)) build/lib/libsteelyard-samples.so
	@$(call put_pages,$(NODE_PROGRAMS) $(BENCH_PROGRAMS))
	$(if $(COMMAND_PAGES),install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(COMMAND_PAGES))
COMMAND_PAGES = $(filter-out $(ALL_PAGES) $(call pages,$(MPI_PROGRAMS)),$(wildcard build/man/*.1))

install-redfish: $(call pages,steelyard-redfish)  ## steelyard-redfish, which writes a BMC's watts where samplers read them, and a unit of systemd to start from
	$(call put,plugins/redfish/steelyard_redfish.py,$(DESTDIR)$(PREFIX)/libexec/steelyard)
	mv -f $(DESTDIR)$(PREFIX)/libexec/steelyard/steelyard_redfish.py $(DESTDIR)$(PREFIX)/libexec/steelyard/steelyard-redfish
	@$(call put_pages,steelyard-redfish)
	install -d -m 0755 $(DESTDIR)$(DOC_DIR)
	sed -e 's|@PREFIX@|$(PREFIX)|g' plugins/redfish/steelyard-redfish.service.example > $(DESTDIR)$(DOC_DIR)/steelyard-redfish.service.example
	@echo "Next: docs/admin.md, “Watts of the node by Redfish”."

HOST_RECORD_DIR = /var/lib/steelyard/host
install-hypervisor: build/bin/steelyard-node $(call pages,steelyard-node)  ## for a host of virtual machines: the sampler, a unit of systemd and a hook of libvirt to start from
	@$(call put_programs,steelyard-node)
	@$(call put_pages,steelyard-node)
	install -d -m 0755 $(DESTDIR)$(HOST_RECORD_DIR) $(DESTDIR)$(DOC_DIR)
	sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@HOST_RECORD_DIR@|$(HOST_RECORD_DIR)|g' plugins/hypervisor/steelyard-vm@.service.example > $(DESTDIR)$(DOC_DIR)/steelyard-vm@.service.example
	install -m 0755 plugins/hypervisor/libvirt_hook.sh $(DESTDIR)$(DOC_DIR)/libvirt_hook.sh
	@echo "Next: docs/virtual.md, “Its host's joules”."

SWEEP_UNITS = service timer cron
install-sweep:  ## for the one machine that sweeps the folder of records: a unit of systemd with its timer and a line for cron to start from
	install -d -m 0755 $(DESTDIR)$(DOC_DIR)
	for kind in $(SWEEP_UNITS); do \
		sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@RECORD_DIR@|$(RECORD_DIR)|g' setup/steelyard-sweep.$$kind.example > $(DESTDIR)$(DOC_DIR)/steelyard-sweep.$$kind.example || exit 1; \
	done
	@echo "Next: docs/records.md, “Swept every night”."

install-spool: $(call pages,steelyard-forward)  ## for nodes whose root may not write to the shared folder of records: a spool, what sends it on, a unit of systemd with its timer and a line for cron to start from
	install -d -m 0755 $(DESTDIR)/var/spool/steelyard $(DESTDIR)$(PREFIX)/libexec/steelyard $(DESTDIR)$(DOC_DIR)
	install -m 0755 plugins/spool/forward.sh $(DESTDIR)$(PREFIX)/libexec/steelyard/steelyard-forward
	@$(call put_pages,steelyard-forward)
	for kind in $(SWEEP_UNITS); do \
		sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@RECORD_DIR@|$(RECORD_DIR)|g' plugins/spool/steelyard-forward.$$kind.example > $(DESTDIR)$(DOC_DIR)/steelyard-forward.$$kind.example || exit 1; \
	done
	@echo "Next: docs/records.md, “A spool on every node”."

wheel: clean $(VENV)/.ready  ## build/dist/steelyard-VERSION-py3-none-any.whl
	$(VENV)/bin/pip wheel -q --no-deps -w build/dist .

# Laid down below DESTDIR, what packages share (setup/parts.txt says which file is whose). As they bring the
# parts of Torque, not as a node has them that is switched on.
install-packaged: install-programs install-redfish install-hypervisor install-sweep install-spool install-torque-parts install-openpbs $(if $(HAVE_SLURM),install-slurm)

# One for each release of Slurm, kind of processor and release of Python, made where nodes have those.
dist: all man $(VENV)/.ready  ## build/dist/steelyard-….tar.gz: prebuilt, with wheels, for nodes without a compiler: PREFIX=/usr/local
	@setup/dist/dist.sh $(PREFIX) $(RECORD_DIR) $(abspath $(VENV))/bin/python $(SLURM_INC)

# Not in `make test`: packages of Debian's more. `-j` of ours is not its.
deb: packages-deb  ## build/deb/*.deb: steelyard-node, and the plugin for the Slurm whose headers are here; lintian looks at them
	@MAKEFLAGS= setup/deb/deb.sh

rpm: packages-rpm  ## build/rpm/*.rpm: the C parts alone, for the Slurm whose headers are here
	@MAKEFLAGS= setup/rpm/rpm.sh

clean:  ## remove everything that was built, the virtual environment too
	rm -rf build

.PHONY: help all npb mpiprof packages packages-test packages-docker packages-glusterfs packages-bench setup demo test groups check check-fast check-unit check-unit-fast check-bats check-c check-sanitize check-fuzz check-torture check-npb check-lab check-lab-guests check-lab-nodes check-spark check-prometheus check-pbs check-docker check-docker-host test-matrix check-layouts check-netem packages-kernels check-kernels check-powercap check-counted check-containers lab-papers lab-glusterfs soak failsafe lint docs site man \
	bench install-slurm install-torque install-torque-parts install-torque-login uninstall-torque install-openpbs uninstall-openpbs FORCE install-programs install-redfish install-hypervisor install-sweep install-spool install-packaged wheel dist packages-deb deb packages-rpm rpm packages-check-packages check-dist check-deb check-rpm clean
