#include "slurmdb.h"

#include <stdio.h>
#include <unistd.h>

#include <slurm/slurm.h>

#define LIMIT_S 60

/* Of a node as slurmctld has it (CPUs, CoreSpecCount, CpuSpecList); 0: not known. slurm.conf may
 * count a core as one CPU, or each of its threads. */
static long count_allocatable(const node_info_t *node)
{
	long cores = (long)node->sockets * node->cores;

	if (cores == 0 || node->cpus == 0 || node->cpus_efctv > node->cpus)
		return 0;
	return cores * node->cpus_efctv / node->cpus;
}

int sy_print_cores(const char *node)
{
	node_info_msg_t *found = NULL;
	long cores = 0;

	(void)alarm(LIMIT_S);
	slurm_init(NULL);
	if (slurm_load_node_single(&found, (char *)node, 0) == SLURM_SUCCESS && found &&
	    found->record_count > 0)
		cores = count_allocatable(&found->node_array[0]);
	slurm_free_node_info_msg(found);
	if (cores <= 0)
		return SY_SLURMDB_MISSING;
	(void)printf("%ld\n", cores);
	return 0;
}
