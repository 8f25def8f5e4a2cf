/* What this process and its reaped children have used: after a step's last task, the whole step,
 * processes too short to be sampled included. */
#ifndef STEELYARD_SLURM_OWN_USAGE_H
#define STEELYARD_SLURM_OWN_USAGE_H

#include <stdbool.h>

struct sy_own_usage {
	long long cpu_us; /* of the children alone */
	long long io[4];  /* rchar, wchar, read_bytes, write_bytes: our own and the children's */
};

/* False when the kernel does not tell. */
bool sy_own_usage_read(struct sy_own_usage *usage);

#endif
