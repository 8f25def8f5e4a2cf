#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "slurmctld_query.h"

struct sy_user_options sy_options;
static const struct sy_config *config;

/* Store all tags so far in the environment, where the job's steps find them. */
static void export_tags(void)
{
	static char text[sizeof(sy_options.tags.items) + SY_TAGS_MAX];

	if (sy_tags_join(&sy_options.tags, text, sizeof(text)) < 0 ||
	    setenv(SY_TAGS_VARIABLE, text, 1) != 0)
		slurm_error("steelyard: tags cannot be handed to the job: no memory");
}

/* The user of this command. Options for partition and exclusive use are not visible here. */
static struct sy_requester make_requester(gid_t *groups, int room)
{
	int count = getgroups(room - 1, groups + 1);

	groups[0] = getgid();
	return (struct sy_requester){
	    .uid = getuid(),
	    .groups = groups,
	    .group_count = count < 0 ? 0 : (size_t)count + 1, /* more than `room`: not known */
	    .exclusive = SY_NOT_KNOWN,
	};
}

/* Whether the policy allows the condition to the user, before the job is queued. Where slurmctld
 * does not answer or the policy cannot be read, the node decides. */
static int check_submission_policy(const char *policy_path, enum sy_user_option which,
				   const struct sy_user_options *options, struct sy_error *err)
{
	gid_t groups[SY_GROUPS_MAX];
	struct sy_requester requester = make_requester(groups, SY_GROUPS_MAX);
	struct sy_addresses scheduler;

	if (sy_check_policy(policy_path, &requester, which, options, err) < 0)
		return -1;
	if (which != SY_USER_OPTION_NETEM || options->netem.none || options->netem.to_count == 0 ||
	    !sy_scheduler_addresses(&scheduler))
		return 0;
	return sy_refuse_scheduler(&options->netem, &scheduler, SY_SLURM_DAEMONS, err);
}

/* In the user's own command: check the policy, and export what the job needs. */
static int accept_submission(enum sy_user_option which, struct sy_error *err)
{
	if (which == SY_USER_OPTION_TAG)
		export_tags();
	if (check_submission_policy(config->node.netem_policy, which, &sy_options, err) == 0)
		return 0;
	if (which == SY_USER_OPTION_NETEM)
		sy_options.has_netem = false;
	return -1;
}

/* In the user's own command a wrong value is refused before the job is queued. On the node a
 * wrong tag or rate is only logged. A condition that cannot be parsed is stored as a fault, so
 * that the job does not run without it. */
static int accept_option(int value, const char *text, int remote)
{
	enum sy_user_option which = (enum sy_user_option)value;
	char fault[sizeof(sy_options.fault)];
	struct sy_error err;

	text = text ? text : "";
	if (sy_user_option_parse(&sy_options, which, text, config->node.max_rate_hz, &err) == 0 &&
	    (remote || accept_submission(which, &err) == 0)) {
		if (remote && which == SY_USER_OPTION_CACHE)
			sy_tag_cache_option(&sy_options);
		return 0;
	}
	sy_format_option_fault(fault, sizeof(fault), which, text, &err);
	if (remote && sy_user_option_facts[which].condition)
		(void)snprintf(sy_options.fault, sizeof(sy_options.fault), "%s", fault);
	else
		slurm_error("steelyard: %s", fault);
	return remote ? 0 : -1;
}

void sy_options_register(spank_t spank, const struct sy_config *arguments)
{
	static struct spank_option options[SY_USER_OPTIONS];
	static char help[SY_USER_OPTIONS][128];
	const char *inherited = getenv(SY_TAGS_VARIABLE);

	config = arguments;
	if (inherited) /* srun inside a job: what it adds comes after the job's own tags */
		sy_tags_add_joined(&sy_options.tags, inherited);
	for (size_t i = 0; i < SY_USER_OPTIONS; i++) {
		(void)snprintf(help[i], sizeof(help[i]), "[steelyard] %s",
			       sy_user_option_facts[i].help);
		options[i] = (struct spank_option){.name = (char *)sy_user_option_facts[i].name,
						   .arginfo = (char *)sy_user_option_facts[i].value,
						   .usage = help[i],
						   .has_arg = sy_user_option_facts[i].value != NULL,
						   .val = (int)i,
						   .cb = accept_option};
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			slurm_error("steelyard: Slurm does not take the option --%s: another "
				    "plugin may have it",
				    sy_user_option_facts[i].name);
	}
}

void sy_options_forget_environment(void)
{
	char name[96];

	(void)unsetenv(SY_TAGS_VARIABLE);
	for (size_t i = 0; i < SY_USER_OPTIONS; i++) {
		(void)snprintf(name, sizeof(name), "SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_%s",
			       sy_user_option_facts[i].name);
		for (char *c = name; *c; c++) {
			if (*c == '-')
				*c = '_';
		}
		(void)unsetenv(name);
	}
}
