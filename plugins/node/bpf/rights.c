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
