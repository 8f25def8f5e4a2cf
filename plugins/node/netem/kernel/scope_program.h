/* The program that writes the band into the priority of the packets that are to be shaped
 * (scope.h). */
#ifndef STEELYARD_NETEM_KERNEL_SCOPE_PROGRAM_H
#define STEELYARD_NETEM_KERNEL_SCOPE_PROGRAM_H

#include <linux/bpf.h>
#include <stdint.h>

#include "netem/spec/spec.h"

#define SY_SCOPE_MOST 4096 /* BPF_MAXINSNS */

/* The program: how many instructions were written to `code`, or -1 when there are too many. */
int sy_scope_program(const struct sy_netem *spec, const struct sy_network *protect, int count,
		     uint32_t priority, struct bpf_insn *code);

#endif
