/* steelyard-bpf, as samplers run it. */
#ifndef STEELYARD_SAMPLER_BPF_LOADER_H
#define STEELYARD_SAMPLER_BPF_LOADER_H

#include <stdbool.h>

#include "base/error.h"

#define SY_LOADER "steelyard-bpf" /* beside steelyard-node */

/* Have it loaded and pinned below `base`, and wait for that: 0, or -1. */
int sy_loader_run(const char *program, const char *base, struct sy_error *reason);

/* The last job has ended: on its usual place, where more may come, have it unloaded when none does
 * soon, by a process that stays behind; elsewhere all is unpinned now. */
void sy_loader_release(const char *program, const char *base, bool more_may_come);

#endif
