#include "sampler/shared.h"

#include <errno.h>
#include <sys/mman.h>

struct sy_shared *sy_shared_new(struct sy_error *err)
{
	struct sy_shared *shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared != MAP_FAILED)
		return shared;
	(void)sy_fail_errno(err, errno, "cannot share memory with the sampler");
	return NULL;
}
