# The C parts once more, by clang with its sanitizers: `make check-sanitize`, `check-torture` and
# `check-fuzz` read this beside the Makefile, and share what is compiled here.
SAN := build/sanitized
SAN_CC ?= clang
SAN_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_CFLAGS := $(SY_CFLAGS) $(SAN_FLAGS) -w -I$(SLURM_INC) -MMD -MP
SAN_LIBS := -ljansson -lmnl -ldl -lm
SAN_NODE_OBJ := $(NODE_SRC:%.c=$(SAN)/%.o)
SAN_PROGRAM_OBJ := $(PROGRAM_SRC:%.c=$(SAN)/%.o)
SAN_SLURM_OBJ := $(patsubst %.c,$(SAN)/%.o,$(wildcard plugins/slurm/*.c))
SAN_TESTS := $(C_TESTS:build/test/%=$(SAN)/test/%)
FUZZ := $(patsubst tests/fuzz/%.c,$(SAN)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# As in the Makefile: what is pinned is found by its layout.
$(SAN)/plugins/node/bpf/place.o: SAN_CFLAGS += -DSY_BPF_HASH=$(BPF_HASH)
$(SAN)/plugins/node/bpf/place.o: $(BPF_LAYOUT)

# fuzzer-no-link: counts what was reached; without libFuzzer nobody reads the counts.
$(SAN)/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(SAN_CC) $(SAN_CFLAGS) -fsanitize=fuzzer-no-link -c -o $@ $<

$(SAN)/libsteelyard.a: $(SAN_NODE_OBJ)
	rm -f $@ && $(AR) qcs $@ $^

# Called before AddressSanitizer is ready: not sanitized itself.
$(SAN)/tests/torture/fail_nth.o: tests/torture/fail_nth.c tests/torture/fail_nth.h
	@mkdir -p $(@D)
	$(SAN_CC) $(SY_CFLAGS) -O1 -g -fno-omit-frame-pointer -c -o $@ $<

# Whose each function is: a test's, or ours (plugins).
FUNCTIONS = nm -S -l --defined-only $@ | awk -F'\t' '$$2 ~ "/tests/c/" { split($$1, f, " "); print "t", f[1], f[2] } \
	$$2 ~ "/plugins/" { split($$1, f, " "); print "p", f[1], f[2] }' > $@.functions

# Every call that may fail passes through tests/torture/fail_nth.c; -no-pie: its addresses are nm's.
$(SAN)/test/%: tests/c/%.c $(SAN)/tests/torture/fail_nth.o $(SAN)/libsteelyard.a
	@mkdir -p $(@D)
	$(SAN_CC) $(SAN_CFLAGS) -MF $@.d -fno-inline -Itests/c -no-pie -rdynamic -o $@ $< $(filter %.o %.a,$^) $(SAN_LIBS)
	$(FUNCTIONS)

$(SAN)/steelyard-node: $(SAN_PROGRAM_OBJ) $(SAN)/tests/torture/fail_nth.o $(SAN)/libsteelyard.a
	$(SAN_CC) $(SAN_FLAGS) -no-pie -rdynamic -o $@ $(filter %.o %.a,$^) $(SAN_LIBS)
	$(FUNCTIONS)

# What the sanitizers need is in the program that loads it.
$(SAN)/spank_steelyard.so: $(SAN_SLURM_OBJ) $(SAN)/libsteelyard.a plugins/slurm/spank_steelyard.map
	$(SAN_CC) $(SAN_FLAGS) -shared -Wl,--version-script=plugins/slurm/spank_steelyard.map \
		-o $@ $(SAN_SLURM_OBJ) $(SAN)/libsteelyard.a $(SAN_LIBS)

$(SAN)/fuzz/%: tests/fuzz/%.c $(SAN)/libsteelyard.a
	@mkdir -p $(@D)
	$(SAN_CC) $(SAN_CFLAGS) -MF $@.d -fsanitize=fuzzer -Itests/fuzz -o $@ $< $(SAN)/libsteelyard.a $(SAN_LIBS)

sanitized-tests: $(SAN_TESTS) $(SAN)/steelyard-node $(if $(HAVE_SLURM),$(SAN)/spank_steelyard.so)

sanitized-fuzzers: $(FUZZ)

run-sanitized:
	@tests/run_sanitized.sh $(SAN)/spank_steelyard.so $(SAN_TESTS)

run-fuzzers:
	@$(PYTHON) -P tests/fuzz/fuzz.py --seconds $(FUZZ_S) $(FUZZ)
	@$(VENV)/bin/python -P tests/fuzz/twins.py $(SAN)/fuzz/fuzz_merge $(SAN)/fuzz/corpus/merge

run-torture:
	@$(PYTHON) tests/torture/torture.py $(if $(filter all,$(TORTURE_S)),--all,--seconds $(TORTURE_S)) \
		--plugin $(SAN)/spank_steelyard.so $(SAN_TESTS) $(SAN)/steelyard-node

.PHONY: sanitized-tests sanitized-fuzzers run-sanitized run-fuzzers run-torture
.PRECIOUS: $(SAN)/%.o

-include $(SAN_NODE_OBJ:.o=.d) $(SAN_PROGRAM_OBJ:.o=.d) $(SAN_SLURM_OBJ:.o=.d) $(SAN_TESTS:=.d) $(FUZZ:=.d)
