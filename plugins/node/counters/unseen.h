/* CPU time that the job's cgroup has counted and no process of the job shows: of processes that
 * nobody has waited for (orphans, children of a parent that ignores SIGCHLD) and no sample saw. */
#ifndef STEELYARD_COUNTERS_UNSEEN_H
#define STEELYARD_COUNTERS_UNSEEN_H

#include <stdbool.h>
#include <stdint.h>

struct sy_unseen {
	bool known; /* there is a cgroup that counts, and a beginning */
	int64_t group_base_us, processes_base_us;
	int64_t us, group_us; /* as of the last comparison */
	int64_t tolerated_us; /* so much may be the accounting's own */
	int daemons;	      /* how many have lain in the group */
};

/* The daemons of steps lie in the job's cgroup where it is of version 2: their own CPU, and how
 * many they are. */
struct sy_daemons {
	int64_t cpu_us;
	int count;
};

void sy_unseen_begin(struct sy_unseen *unseen, int64_t group_us, int64_t processes_us,
		     const struct sy_daemons *daemons);

void sy_unseen_compare(struct sy_unseen *unseen, int64_t group_us, int64_t processes_us,
		       const struct sy_daemons *daemons);

/* What the group has counted less what the daemons have used. */
int64_t sy_unseen_left_us(const struct sy_unseen *unseen, int64_t group_us,
			  const struct sy_daemons *daemons);

/* More than rounding explains: what the processes show is not the job. */
bool sy_unseen_matters(const struct sy_unseen *unseen);

#endif
