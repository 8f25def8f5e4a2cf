#include "options.h"

#include <stdlib.h>

enum { OPTION_TAG, OPTION_RATE };

struct sy_options sy_options;
static double highest_rate_hz;

/* Leave all tags so far where the job's steps find them. */
static void carry_tags(void)
{
	static char text[sizeof(sy_options.tags.items) + SY_TAGS_MAX];

	if (sy_tags_join(&sy_options.tags, text, sizeof(text)) < 0 ||
	    setenv(SY_TAGS_VARIABLE, text, 1) != 0)
		slurm_error("steelyard: tags cannot be handed to the job: no memory");
}

static int take_tag(const char *text, struct sy_error *err)
{
	return sy_tags_add(&sy_options.tags, text, err);
}

static int take_rate(const char *text, struct sy_error *err)
{
	if (sy_rate_parse(text, highest_rate_hz, &sy_options.rate_hz, err) < 0)
		return -1;
	sy_options.has_rate = true;
	return 0;
}

/* In the user's own command a wrong value is refused, before anything is queued; on the node it is
 * only logged (the environment that carries it is the user's to change). */
static int take(int which, const char *text, int remote)
{
	struct sy_error err;
	int rc;

	text = text ? text : "";
	rc = which == OPTION_TAG ? take_tag(text, &err) : take_rate(text, &err);
	if (rc < 0) {
		slurm_error("steelyard: --%s=%s: %s", which == OPTION_TAG ? "tag" : "sample-rate",
			    text, err.text);
		return remote ? 0 : -1;
	}
	if (!remote && which == OPTION_TAG)
		carry_tags();
	return 0;
}

void sy_options_register(spank_t spank, double max_rate_hz)
{
	static struct spank_option options[] = {
	    {(char *)"tag", (char *)"KEY=VALUE",
	     (char *)"[steelyard] note a condition with the job's record; repeatable", 1,
	     OPTION_TAG, take},
	    {(char *)"sample-rate", (char *)"HZ",
	     (char *)"[steelyard] samples of energy, CPU, I/O and network a second; 0: none", 1,
	     OPTION_RATE, take},
	};
	const char *inherited = getenv(SY_TAGS_VARIABLE);

	highest_rate_hz = max_rate_hz;
	if (inherited) /* srun inside a job: what it adds comes after the job's own tags */
		sy_tags_add_joined(&sy_options.tags, inherited);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			slurm_error("steelyard: Slurm does not take the option --%s: another "
				    "plugin may have it",
				    options[i].name);
	}
}

void sy_options_forget_environment(void)
{
	(void)unsetenv(SY_TAGS_VARIABLE);
	(void)unsetenv("SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_tag");
	(void)unsetenv("SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_sample_rate");
}
