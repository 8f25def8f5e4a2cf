#include "job/admission.h"

#include <unistd.h>

#include "netem/policy/policy.h"

static int ask(const struct sy_policy *policy, const struct sy_asker *who, enum sy_wish which,
	       const struct sy_wishes *wishes, struct sy_error *err)
{
	switch (which) {
	case SY_WISH_NETEM:
		return sy_policy_allows_netem(policy, &wishes->netem, who, err);
	case SY_WISH_CACHE:
		return sy_policy_allows_cache(policy, who, err);
	default:
		return 0;
	}
}

static bool is_free(enum sy_wish which, const struct sy_wishes *wishes)
{
	return !sy_wish_words[which].condition || (which == SY_WISH_NETEM && wishes->netem.none) ||
	       (which == SY_WISH_CACHE && wishes->cache != SY_CACHE_COLD);
}

int sy_admit(const char *policy_path, const struct sy_asker *who, enum sy_wish which,
	     const struct sy_wishes *wishes, struct sy_error *err)
{
	struct sy_policy *policy;
	int rc;

	if (is_free(which, wishes) || access(policy_path, R_OK) != 0)
		return 0;
	policy = sy_policy_read(policy_path, true, err);
	if (!policy)
		return -1;
	rc = ask(policy, who, which, wishes, err);
	sy_policy_free(policy);
	return rc;
}
