/* How many cores of a node Slurm lets jobs have. */
#ifndef STEELYARD_SLURMDB_CORES_H
#define STEELYARD_SLURMDB_CORES_H

#include <slurm/slurm.h>

/* Of a node as slurmctld has it (CPUs, CoreSpecCount, CpuSpecList); 0: not known. */
long sy_allocatable_cores(const node_info_t *node);

/* Ask slurmctld, and print the number; the exit code: 3 where it is not known. */
int sy_print_cores(const char *node);

#endif
