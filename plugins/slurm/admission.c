#include "admission.h"

#include <unistd.h>

#include "job/job_options.h"
#include "job_facts.h"

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

int sy_admit_here(const char *policy_path, enum sy_user_option which,
		  const struct sy_user_options *wishes, struct sy_error *err)
{
	gid_t groups[SY_GROUPS_MAX];
	struct sy_asker who = asker(groups, SY_GROUPS_MAX);
	struct sy_addresses scheduler;

	if (sy_check_policy(policy_path, &who, which, wishes, err) < 0)
		return -1;
	if (which != SY_USER_OPTION_NETEM || wishes->netem.none || wishes->netem.to_count == 0 ||
	    !sy_scheduler_addresses(&scheduler))
		return 0;
	return sy_refuse_scheduler(&wishes->netem, &scheduler, SY_SLURM_DAEMONS, err);
}
