#include "npb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { WHERE = 160 };

/* What a rank may take, and what says so. */
struct room {
	uint64_t bytes;
	char where[WHERE];
};

/* Bytes that can be had without swapping (MemAvailable, proc(5)); UINT64_MAX when not known. */
static uint64_t available_bytes(const char *root)
{
	uint64_t kib = UINT64_MAX;
	char line[1024];
	FILE *file;

	snprintf(line, sizeof(line), "%s/proc/meminfo", root);
	file = fopen(line, "re");
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

static void tighten(struct room *room, uint64_t bytes, const char *where)
{
	if (bytes >= room->bytes)
		return;
	room->bytes = bytes;
	snprintf(room->where, sizeof(room->where), "%s", where);
}

/* Memory and the group's limits are shared with the node's other ranks, for mpirun starts them all
 * in one group. NPB_ROOT: a recorded tree instead of this machine's. */
static struct room room_of(MPI_Comm comm)
{
	const uint64_t ranks = (uint64_t)ranks_on_node(comm);
	const char *root = getenv("NPB_ROOT");
	struct room room = {.bytes = UINT64_MAX};
	char group[WHERE - 32] = "", where[WHERE];

	root = root ? root : "";
	tighten(&room, available_bytes(root) / ranks, "available on the node");
	tighten(&room, limit_bytes(), "limit of ulimit -v");
	tighten(&room, npb_cgroup_free_bytes(root, group, sizeof(group)) / ranks, "");
	if (!room.where[0]) {
		snprintf(where, sizeof(where), "left by the limit of %s", group);
		snprintf(room.where, sizeof(room.where), "%s", where);
	}
	return room;
}

/* The room of the rank that has the least. */
static void smallest(struct room *room, const struct npb_run *run)
{
	struct {
		double bytes;
		int rank;
	} mine = {(double)room->bytes, run->rank}, least;

	MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, run->comm);
	MPI_Bcast(room, sizeof(*room), MPI_BYTE, least.rank, run->comm);
}

bool npb_check_memory(const struct npb_kernel *kernel, const struct npb_run *run, char *message,
		      size_t size)
{
	const uint64_t needed = kernel->memory_bytes(run->class, run->ranks);
	struct room room = room_of(run->comm);

	smallest(&room, run);
	if (needed <= room.bytes)
		return true;
	snprintf(message, size,
		 "class %c on %d ranks needs %.1f GB of memory per rank, found %.1f GB (%s): use "
		 "more nodes or a smaller class",
		 run->class_name, run->ranks, (double)needed * 1e-9, (double)room.bytes * 1e-9,
		 room.where);
	return false;
}
