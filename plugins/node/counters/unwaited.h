/* Processes that are gone, and whether whoever is left shows all that they have used. Page faults
 * tell: the kernel adds them, to the last one, to whoever waits, while CPU is told in ticks and a
 * parent's own bytes stand beside its children's. */
#ifndef STEELYARD_COUNTERS_UNWAITED_H
#define STEELYARD_COUNTERS_UNWAITED_H

#include <stdbool.h>
#include <stdint.h>

struct sy_gone {
	int64_t faults;	 /* of all of them, when they were seen last */
	int64_t resting; /* of those that were not at work then */
	int64_t at_work; /* how many were */
	int64_t least;	 /* the fewest faults that one of these had */
	int64_t most_us; /* CPU that the threads of these may have used since; -1: not known */
};

void sy_gone_add(struct sy_gone *sum, const struct sy_gone *more);

/* Are those at work in the page faults that are `left` of a parent's? As many faults as there are
 * are used up. Nobody need have waited for one at rest: srun forks one for its own end, and leaves
 * it to init. */
bool sy_gone_are_shown(const struct sy_gone *gone, int64_t *left);

#endif
