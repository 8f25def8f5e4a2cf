#include "config.h"

#include <string.h>

/* NAME=VALUE: what of the configuration it sets, and whether it could. */
static int set_one(struct sy_config *config, const char *name, const char *value,
		   struct sy_error *err)
{
	if (strcmp(name, "admin_comment") == 0)
		return sy_config_set_switch(&config->admin_comment, value, err);
	return sy_job_config_set(&config->node, name, value, err);
}

/* One argument: 0, or -1 with why it is ignored. */
static int take(struct sy_config *config, const char *argument, struct sy_error *err)
{
	static const char *const names[] = {"record_dir",   "run_dir",	    "node_program",
					    "netem_policy", "rate",	    "max_rate",
					    "bpf",	    "admin_comment"};
	size_t length = strcspn(argument, "=");
	struct sy_error reason;

	for (size_t i = 0; argument[length] && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) != length || strncmp(argument, names[i], length) != 0)
			continue;
		if (set_one(config, names[i], argument + length + 1, &reason) == 0)
			return 0;
		return sy_fail(err, "plugstack.conf: %.200s ignored: %s", argument, reason.text);
	}
	return sy_fail(err,
		       "plugstack.conf: unknown argument '%.200s' ignored; known: record_dir, "
		       "run_dir, node_program, netem_policy, rate, max_rate, bpf, admin_comment",
		       argument);
}

void sy_config_parse(struct sy_config *config, int ac, char *const *av,
		     void (*complain)(const char *sentence))
{
	struct sy_error err;

	*config = (struct sy_config){.admin_comment = true};
	sy_job_config_init(&config->node);
	(void)strcpy(config->node.node_program, "/usr/local/libexec/steelyard/steelyard-node");
	for (int i = 0; i < ac; i++)
		if (take(config, av[i], &err) < 0 && complain)
			complain(err.text);
}
