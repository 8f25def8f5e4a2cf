#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission.h"
#include "base/rate.h"

#define SHOWN_MAX 80 /* how much of a faulty value a message repeats */

struct sy_options sy_options;
static const struct sy_config *config;

/* Leave all tags so far where the job's steps find them. */
static void carry_tags(void)
{
	static char text[sizeof(sy_options.tags.items) + SY_TAGS_MAX];

	if (sy_tags_join(&sy_options.tags, text, sizeof(text)) < 0 ||
	    setenv(SY_TAGS_VARIABLE, text, 1) != 0)
		slurm_error("steelyard: tags cannot be handed to the job: no memory");
}

static int take_tag(const char *text, bool remote, struct sy_error *err)
{
	if (sy_tags_add(&sy_options.tags, text, err) < 0)
		return -1;
	if (!remote)
		carry_tags();
	return 0;
}

static int take_rate(const char *text, bool remote, struct sy_error *err)
{
	(void)remote;
	if (sy_rate_parse(text, config->max_rate_hz, &sy_options.rate_hz, err) < 0)
		return -1;
	sy_options.has_rate = true;
	return 0;
}

static int take_netem(const char *text, bool remote, struct sy_error *err)
{
	sy_options.has_netem = false;
	if (sy_netem_parse(text, &sy_options.netem, err) < 0)
		return -1;
	if (!remote && sy_admit_netem(config->netem_policy, &sy_options.netem, err) < 0)
		return -1;
	sy_options.has_netem = true;
	return 0;
}

static int take_cache(const char *text, bool remote, struct sy_error *err)
{
	if (strcmp(text, "cold") != 0 && strcmp(text, "warm") != 0)
		return sy_fail(err, "expected cold or warm");
	sy_options.cache = text[0] == 'c' ? SY_CACHE_COLD : SY_CACHE_WARM;
	if (remote) /* the record says so */
		return sy_tags_add(&sy_options.tags, text[0] == 'c' ? "cache=cold" : "cache=warm",
				   err);
	if (sy_options.cache == SY_CACHE_WARM)
		return 0;
	return sy_admit_cold_cache(config->netem_policy, err);
}

static int take_capture(const char *text, bool remote, struct sy_error *err)
{
	(void)text;
	sy_options.capture = true;
	return remote ? 0 : sy_admit_capture(config->netem_policy, err);
}

static const struct {
	const char *name, *value, *help;
	int (*take)(const char *text, bool remote, struct sy_error *err);
	bool condition; /* a job must not run without it */
} table[] = {
    {"tag", "KEY=VALUE", "[steelyard] note a condition with the job's record; repeatable", take_tag,
     false},
    {"sample-rate", "HZ",
     "[steelyard] samples of energy, CPU, I/O and network a second; 0: totals only", take_rate,
     false},
    {"netem", "SPEC", "[steelyard] network conditions, say delay=50ms,loss=0.1%; none: as they are",
     take_netem, true},
    {"cache", "cold|warm", "[steelyard] cold: drop the nodes' page caches before the job",
     take_cache, true},
    {"capture", NULL, "[steelyard] record the headers of the job's packets", take_capture, true},
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

/* The beginning of what was given, fit for a log: whoever gave it must not write lines there. */
static void show(char to[SHOWN_MAX + 4], const char *text)
{
	(void)snprintf(to, SHOWN_MAX + 4, "%.*s%s", SHOWN_MAX, text,
		       strlen(text) > SHOWN_MAX ? "..." : "");
	for (char *c = to; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

/* In the user's own command a wrong value is refused, before anything is queued. On the node a
 * wrong tag or rate is only logged; a condition that is not understood is remembered, so that the
 * job does not run without it. */
static int take(int which, const char *text, int remote)
{
	char shown[SHOWN_MAX + 4], said[sizeof(sy_options.fault)];
	struct sy_error err;
	const char *name = table[which].name;

	text = text ? text : "";
	if (table[which].take(text, remote, &err) == 0)
		return 0;
	show(shown, text);
	(void)snprintf(said, sizeof(said), "--%s%s%s: %.*s", name, table[which].value ? "=" : "",
		       table[which].value ? shown : "", (int)sizeof(said) - SHOWN_MAX - 32,
		       err.text);
	if (remote && table[which].condition)
		(void)snprintf(sy_options.fault, sizeof(sy_options.fault), "%s", said);
	else
		slurm_error("steelyard: %s", said);
	return remote ? 0 : -1;
}

void sy_options_register(spank_t spank, const struct sy_config *arguments)
{
	static struct spank_option options[OPTIONS];
	const char *inherited = getenv(SY_TAGS_VARIABLE);

	config = arguments;
	if (inherited) /* srun inside a job: what it adds comes after the job's own tags */
		sy_tags_add_joined(&sy_options.tags, inherited);
	for (size_t i = 0; i < OPTIONS; i++) {
		options[i] = (struct spank_option){.name = (char *)table[i].name,
						   .arginfo = (char *)table[i].value,
						   .usage = (char *)table[i].help,
						   .has_arg = table[i].value != NULL,
						   .val = (int)i,
						   .cb = take};
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			slurm_error("steelyard: Slurm does not take the option --%s: another "
				    "plugin may have it",
				    table[i].name);
	}
}

void sy_options_forget_environment(void)
{
	char name[96];

	(void)unsetenv(SY_TAGS_VARIABLE);
	for (size_t i = 0; i < OPTIONS; i++) {
		(void)snprintf(name, sizeof(name), "SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_%s",
			       table[i].name);
		for (char *c = name; *c; c++) {
			if (*c == '-')
				*c = '_';
		}
		(void)unsetenv(name);
	}
}
