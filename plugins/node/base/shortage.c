#include "base/shortage.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_uint shortages;

bool sy_is_shortage(int errnum)
{
	return errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
}

int sy_short(int errnum)
{
	if (sy_is_shortage(errnum))
		atomic_fetch_add(&shortages, 1);
	return -errnum;
}

unsigned sy_shortages(void)
{
	return atomic_load(&shortages);
}
