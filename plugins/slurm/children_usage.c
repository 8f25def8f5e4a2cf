#include "children_usage.h"

#include <sys/resource.h>

#include "counters/command_usage.h"

/* A child begins as a copy of us: what is not larger than we are may be that copy, before it became
 * the user's program. */
static long long largest_bytes(const struct rusage *children)
{
	struct rusage own;

	if (getrusage(RUSAGE_SELF, &own) != 0 || children->ru_maxrss <= own.ru_maxrss)
		return 0;
	return (long long)children->ru_maxrss * 1024;
}

bool sy_own_usage_read(struct sy_own_usage *usage)
{
	struct rusage children;

	if (getrusage(RUSAGE_CHILDREN, &children) != 0)
		return false;
	usage->cpu_us = (long long)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000 +
			children.ru_utime.tv_usec + children.ru_stime.tv_usec;
	usage->largest_bytes = largest_bytes(&children);
	usage->io_known = sy_reaped_io(usage->io) == 0;
	return true;
}
