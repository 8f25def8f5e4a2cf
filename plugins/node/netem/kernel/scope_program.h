/* The program that writes the band into the priority of the packets that are to be shaped
 * (scope.h). */
#ifndef STEELYARD_NETEM_KERNEL_SCOPE_PROGRAM_H
#define STEELYARD_NETEM_KERNEL_SCOPE_PROGRAM_H

#include <linux/bpf.h>
#include <stdint.h>

#include "netem/spec/spec.h"

#define SY_SCOPE_MOST 4096 /* BPF_MAXINSNS */

#define SY_SCOPE_RULES 15 /* bands of a device */

/* Which packets get which priority. Of several each has a `to`, and none a port. */
struct sy_scope_rule {
	const struct sy_netem *spec;
	uint32_t priority;
};

/* The program: how many instructions were written to `code`, or -1 when there are too many. */
int sy_scope_program(const struct sy_scope_rule *rule, int rules, const struct sy_network *protect,
		     int count, struct bpf_insn *code);

#endif
