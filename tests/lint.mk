# `make lint` reads this beside the Makefile. A source is checked again when it, a header of it or a
# flag has changed.
LINT := build/lint
C_FILES := $(shell git ls-files '*.c' '*.h')
SHELL_FILES := $(shell git ls-files '*.sh' '*.bats' '*.bash' .ci/run)
# Found by mpicc alone is mpi.h; only where libbpf is, what is linked with it can be compiled.
MPI_FILES := jobscripts/npb/% plugins/mpi/% tests/mpi/%
LINT_SRC := $(filter-out $(MPI_FILES) %.bpf.c tests/guests/powercap/% $(if $(HAVE_BPF),,plugins/bpf/%),$(filter %.c,$(C_FILES)))
LINT_FLAGS := $(SY_CFLAGS) -Itests/c -I$(SLURM_INC) -Werror -O2
# Compiled only: for aarch64, and with musl, which needs the kernel's headers; both as if the headers
# were RHEL 8's. What neither compiler finds by itself are headers of no architecture.
CROSS_SRC := $(filter-out $(MPI_FILES) plugins/uml/% plugins/bpf/%,$(filter plugins/%.c,$(C_FILES)))
CROSS_FLAGS := $(SY_CFLAGS) -Werror -Iplugins/slurm -include tests/c/rhel8.h -isystem build/cross/any
MUSL_FLAGS := -Wno-sign-conversion -isystem build/cross/kernel
HEADERS = $(wildcard $(addprefix /usr/include/,jansson.h jansson_config.h */jansson_config.h libmnl)) $(SLURM_INC)/slurm
KERNEL_HEADERS = $(wildcard $(addprefix /usr/include/,linux asm-generic *-linux-gnu/asm))

lint-all: lint-python lint-shell lint-format lint-c lint-cross lint-mpi

lint-python:
	@$(VENV)/bin/ruff check -q .
	@$(VENV)/bin/ruff format -q --check .
	@$(VENV)/bin/mypy --no-error-summary

lint-shell: $(LINT)/shell
# All of them when one has changed: they read each other.
$(LINT)/shell: $(SHELL_FILES) $(wildcard .shellcheckrc)
	@shfmt -d -i 4 $(SHELL_FILES)
	@printf '%s\n' $(SHELL_FILES) | xargs -n 10 -P $(shell nproc) shellcheck -x
	@touch $@

lint-format: $(LINT)/format
$(LINT)/format: $(C_FILES) .clang-format
	@clang-format --dry-run -Werror $(filter $(C_FILES),$?) $(if $(filter .clang-format,$?),$(C_FILES))
	@touch $@

lint-mpi: $(if $(HAVE_MPICC),$(LINT)/mpi)
$(LINT)/mpi: $(wildcard jobscripts/npb/src/*.[ch] plugins/mpi/*.[ch] plugins/mpi/*.map tests/mpi/*.[ch]) jobscripts/npb/Makefile plugins/mpi/Makefile
	@$(MAKE) --no-print-directory -s -C jobscripts/npb lint
	@$(MAKE) --no-print-directory -s -C plugins/mpi lint
	@touch $@

$(LINT)/gcc/jobscripts/stream/stream.ok $(LINT)/clang/jobscripts/stream/stream.ok: LINT_FLAGS += -fopenmp
ONCE = -fsyntax-only -MMD -MP -MF $@.d -MT $@ $< && touch $@
$(LINT)/gcc/%.ok: %.c $(LINT)/flags
	@gcc $(LINT_FLAGS) $(ONCE)
$(LINT)/clang/%.ok: %.c $(LINT)/flags
	@clang $(LINT_FLAGS) $(ONCE)
$(LINT)/aarch64/%.ok: %.c $(LINT)/flags | lint-headers
	@aarch64-linux-gnu-gcc $(CROSS_FLAGS) $(ONCE)
$(LINT)/musl/%.ok: %.c $(LINT)/flags | lint-headers
	@musl-gcc $(CROSS_FLAGS) $(MUSL_FLAGS) $(ONCE)

LINTED := $(foreach cc,gcc clang,$(LINT_SRC:%.c=$(LINT)/$(cc)/%.ok))
CROSSED := $(foreach cc,aarch64 musl,$(CROSS_SRC:%.c=$(LINT)/$(cc)/%.ok))
$(shell mkdir -p $(sort $(dir $(LINTED) $(CROSSED))))
$(file >$(LINT)/flags.new,$(LINT_FLAGS) $(CROSS_FLAGS) $(MUSL_FLAGS))
$(shell cd $(LINT) && { cmp -s flags flags.new || cp flags.new flags; })

lint-c: $(LINTED)
lint-cross: $(CROSSED)

lint-headers:
	@rm -rf build/cross && mkdir -p build/cross/any build/cross/kernel
	@ln -s $(HEADERS) build/cross/any && ln -s $(KERNEL_HEADERS) build/cross/kernel

.PHONY: lint-all lint-python lint-shell lint-format lint-c lint-cross lint-mpi lint-headers
-include $(addsuffix .d,$(wildcard $(LINTED) $(CROSSED)))
