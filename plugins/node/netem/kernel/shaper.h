/* The words of tc-netem(8) and tc-tbf(8) for what a specification asks of packets. */
#ifndef STEELYARD_NETEM_KERNEL_SHAPER_H
#define STEELYARD_NETEM_KERNEL_SHAPER_H

#include <stdio.h>

#include "netem/kernel/plan.h"

/* ` netem limit 1000 delay 50000us` and the end of the line. A seed is not among them: tc knows it
 * only since iproute2 6.6 (sy_qdisc_seed() of qdisc.h). */
void sy_write_shaper(FILE *out, const struct sy_netem *spec, const struct sy_place *place);

#endif
