/* Whether the job has all cores of this node. */
#ifndef STEELYARD_SLURM_EXCLUSIVE_H
#define STEELYARD_SLURM_EXCLUSIVE_H

#include <slurm/spank.h>

#include "job/totals.h"

/* Not said where several slurmd share a host: no node there is a job's own. */
enum sy_exclusive sy_exclusive_of(spank_t spank, const char *node);

#endif
