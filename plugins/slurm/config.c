#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "netem/policy/policy.h"
#include "job/job_options.h"

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

/* The value after "name=", or NULL when `argument` is another one. */
static const char *value_of(const char *argument, const char *name)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length) != 0 || argument[length] != '=')
		return NULL;
	return argument + length + 1;
}

static void set_path(char *path, const char *value, const char *name, complain_f *complain)
{
	if (value[0] != '/' || strlen(value) >= SY_PATH_SIZE)
		report_fault(complain,
			     "plugstack.conf: %s=%s ignored: expected an absolute path of less "
			     "than %d bytes",
			     name, value, SY_PATH_SIZE);
	else
		(void)snprintf(path, SY_PATH_SIZE, "%s", value);
}

static void set_rate(double *hz, const char *value, const char *name, complain_f *complain)
{
	struct sy_error err;

	if (sy_rate_parse(value, SY_MAX_RATE_HZ, hz, &err) < 0)
		report_fault(complain, "plugstack.conf: %s=%s ignored: %s", name, value, err.text);
}

static void set_switch(bool *on, const char *value, const char *name, complain_f *complain)
{
	if (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0)
		*on = value[0] == 'y';
	else
		report_fault(complain, "plugstack.conf: %s=%s ignored: expected yes or no", name,
			     value);
}

static void set_one(struct sy_config *config, const char *argument, complain_f *complain)
{
	const char *value;

	if ((value = value_of(argument, "record_dir")))
		set_path(config->record_dir, value, "record_dir", complain);
	else if ((value = value_of(argument, "run_dir")))
		set_path(config->run_dir, value, "run_dir", complain);
	else if ((value = value_of(argument, "node_program")))
		set_path(config->node_program, value, "node_program", complain);
	else if ((value = value_of(argument, "netem_policy")))
		set_path(config->netem_policy, value, "netem_policy", complain);
	else if ((value = value_of(argument, "rate")))
		set_rate(&config->rate_hz, value, "rate", complain);
	else if ((value = value_of(argument, "max_rate")))
		set_rate(&config->max_rate_hz, value, "max_rate", complain);
	else if ((value = value_of(argument, "bpf")))
		set_switch(&config->bpf, value, "bpf", complain);
	else if ((value = value_of(argument, "admin_comment")))
		set_switch(&config->admin_comment, value, "admin_comment", complain);
	else
		report_fault(
		    complain,
		    "plugstack.conf: unknown argument '%s' ignored; known: record_dir, run_dir, "
		    "node_program, netem_policy, rate, max_rate, bpf, admin_comment",
		    argument);
}

void sy_config_parse(struct sy_config *config, int ac, char *const *av, complain_f *complain)
{
	*config = (struct sy_config){
	    .record_dir = "/var/lib/steelyard/records",
	    .run_dir = "/run/steelyard",
	    .node_program = "/usr/local/libexec/steelyard/steelyard-node",
	    .netem_policy = SY_POLICY_PATH,
	    .rate_hz = 1.0,
	    .max_rate_hz = 100.0,
	    .bpf = true,
	    .admin_comment = true,
	};
	for (int i = 0; i < ac; i++)
		set_one(config, av[i], complain);
}
