#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef void complain_f(const char *sentence);

__attribute__((format(printf, 2, 3))) static void report_fault(complain_f *complain,
							       const char *format, ...)
{
	char text[1024];
	va_list list;

	if (!complain)
		return;
	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	complain(text);
}

/* NAME=VALUE: what of the configuration it sets, and whether it could. */
static int set_one(struct sy_config *config, const char *name, const char *value,
		   struct sy_error *err)
{
	if (strcmp(name, "admin_comment") == 0)
		return sy_config_set_switch(&config->admin_comment, value, err);
	return sy_job_config_set(&config->node, name, value, err);
}

static void take(struct sy_config *config, const char *argument, complain_f *complain)
{
	static const char *const names[] = {"record_dir",   "run_dir",	    "node_program",
					    "netem_policy", "rate",	    "max_rate",
					    "bpf",	    "admin_comment"};
	size_t length = strcspn(argument, "=");
	struct sy_error err;

	for (size_t i = 0; argument[length] && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) != length || strncmp(argument, names[i], length) != 0)
			continue;
		if (set_one(config, names[i], argument + length + 1, &err) < 0)
			report_fault(complain, "plugstack.conf: %s ignored: %s", argument,
				     err.text);
		return;
	}
	report_fault(complain,
		     "plugstack.conf: unknown argument '%s' ignored; known: record_dir, run_dir, "
		     "node_program, netem_policy, rate, max_rate, bpf, admin_comment",
		     argument);
}

void sy_config_parse(struct sy_config *config, int ac, char *const *av, complain_f *complain)
{
	*config = (struct sy_config){.admin_comment = true};
	sy_job_config_init(&config->node);
	(void)strcpy(config->node.node_program, "/usr/local/libexec/steelyard/steelyard-node");
	for (int i = 0; i < ac; i++)
		take(config, av[i], complain);
}
