#include "admission.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "job_facts.h"
#include "netem/policy/file.h"
#include "netem/policy/policy.h"

/* Who is at the keyboard; partition and exclusive use are in options that we do not see. */
static struct sy_asker asker(gid_t *groups, int room)
{
	int count = getgroups(room - 1, groups + 1);

	groups[0] = getgid();
	return (struct sy_asker){
	    .uid = getuid(),
	    .groups = groups,
	    .group_count = count < 0 ? 0 : (size_t)count + 1, /* more than `room`: not known */
	    .exclusive = SY_NOT_KNOWN,
	};
}

typedef int question(const struct sy_policy *, const struct sy_netem *, const struct sy_asker *,
		     struct sy_error *);

static int ask(const char *policy_path, const struct sy_netem *spec, question *allows,
	       struct sy_error *err)
{
	gid_t groups[SY_GROUPS_MAX];
	struct sy_asker who = asker(groups, SY_GROUPS_MAX);
	struct sy_policy *policy;
	int rc;

	if (access(policy_path, R_OK) != 0)
		return 0;
	policy = sy_policy_read(policy_path, true, err);
	if (!policy)
		return -1;
	rc = allows(policy, spec, &who, err);
	sy_policy_free(policy);
	return rc;
}

static int cache(const struct sy_policy *policy, const struct sy_netem *spec,
		 const struct sy_asker *who, struct sy_error *err)
{
	(void)spec;
	return sy_policy_allows_cache(policy, who, err);
}

static int capture(const struct sy_policy *policy, const struct sy_netem *spec,
		   const struct sy_asker *who, struct sy_error *err)
{
	(void)spec;
	return sy_policy_allows_capture(policy, who, err);
}

int sy_admit_netem(const char *policy_path, const struct sy_netem *spec, struct sy_error *err)
{
	struct sy_addresses scheduler;

	if (spec->none)
		return 0;
	if (ask(policy_path, spec, sy_policy_allows_netem, err) < 0)
		return -1;
	if (spec->to_count == 0 || !sy_scheduler_addresses(&scheduler))
		return 0;
	return sy_refuse_scheduler(spec, &scheduler, err);
}

int sy_admit_cold_cache(const char *policy_path, struct sy_error *err)
{
	return ask(policy_path, NULL, cache, err);
}

int sy_admit_capture(const char *policy_path, struct sy_error *err)
{
	return ask(policy_path, NULL, capture, err);
}
