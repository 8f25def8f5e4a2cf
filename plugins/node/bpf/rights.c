#include "bpf/rights.h"

#include "base/rights.h"
#include "bpf/call.h"

#include <errno.h>

/* Whatever it answers, but that it may not be asked. */
static int look(const void *context)
{
	const struct sy_bpf *bpf = context;
	struct sy_bpf_asker first;

	return sy_bpf_next_key(bpf->requests, NULL, &first);
}

bool sy_bpf_wants_right(const struct sy_bpf *bpf)
{
	return sy_needs_rights(look, bpf);
}

struct rlimit sy_bpf_lift_limit(void)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	struct rlimit before = none;

	(void)getrlimit(RLIMIT_MEMLOCK, &before);
	(void)setrlimit(RLIMIT_MEMLOCK, &none);
	return before;
}

void sy_bpf_restore_limit(const struct rlimit *before)
{
	(void)setrlimit(RLIMIT_MEMLOCK, before);
}
