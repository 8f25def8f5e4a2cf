#include "counters/unwaited.h"

/* What lacks is nobody's who was at work and has more than so many times as many faults: the others
 * would have had to make up for nearly all of his meanwhile. */
#define FAR_MORE 4

static int64_t least_of(const struct sy_gone *one, const struct sy_gone *other)
{
	if (!one->at_work || !other->at_work)
		return one->at_work ? one->least : other->least;
	return one->least < other->least ? one->least : other->least;
}

void sy_gone_add(struct sy_gone *sum, const struct sy_gone *more)
{
	sum->least = least_of(sum, more);
	sum->faults += more->faults;
	sum->resting += more->resting;
	sum->at_work += more->at_work;
	sum->most_us = sum->most_us < 0 || more->most_us < 0 ? -1 : sum->most_us + more->most_us;
}

bool sy_gone_are_shown(const struct sy_gone *gone, int64_t *left)
{
	int64_t lacking = gone->faults > *left ? gone->faults - *left : 0;

	*left -= gone->faults - lacking;
	return !lacking || (lacking <= gone->resting && lacking * FAR_MORE < gone->least);
}
