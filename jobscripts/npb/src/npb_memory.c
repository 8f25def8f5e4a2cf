#include "npb_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

/* Bytes that can be had without swapping (MemAvailable, proc(5)); UINT64_MAX when not known. */
static uint64_t available_bytes(void)
{
	uint64_t kib = UINT64_MAX;
	char line[256];
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1)
			break;
	}
	fclose(file);
	return kib == UINT64_MAX ? kib : kib * 1024;
}

/* The limit of one process (ulimit -v), UINT64_MAX when there is none. */
static uint64_t limit_bytes(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static int ranks_on_node(MPI_Comm comm)
{
	MPI_Comm node;
	int ranks;

	MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &ranks);
	MPI_Comm_free(&node);
	return ranks;
}

bool npb_check_memory(const struct npb_kernel *kernel, const struct npb_run *run, char *message,
		      size_t size)
{
	const uint64_t needed = kernel->memory_bytes(run->class, run->ranks);
	const uint64_t ranks = (uint64_t)ranks_on_node(run->comm);
	const uint64_t share = available_bytes() / ranks, limit = limit_bytes();
	uint64_t least = share < limit ? share : limit;

	MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, run->comm);
	if (needed <= least)
		return true;
	snprintf(message, size,
		 "class %c on %d ranks needs %.1f GB of memory per rank, found %.1f GB: use more "
		 "nodes or a smaller class",
		 run->class_name, run->ranks, (double)needed * 1e-9, (double)least * 1e-9);
	return false;
}
