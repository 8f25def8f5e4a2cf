/* The administrator's node.conf: the first line is a node's name, the others are the file. */
#include "fuzz.h"

#include <math.h>

#include "meters/idle_power_setting.h"

#define MOST_NAME 64 /* fnmatch(3) may take long of longer ones, and no scheduler has any */

static int answer(const char *file, const char *node, double *watts)
{
	struct sy_error err = {0};
	char *copy = strdup(file);
	int said;

	must(copy);
	*watts = NAN;
	said = sy_idle_power_find(copy, node, watts, &err);
	must(said == 0 || said == -1 || said == SY_IDLE_POWER_FAULT);
	if (said == 0)
		must(*watts >= 0 && *watts <= SY_IDLE_POWER_MAX);
	else
		must_say_why(&err);
	must(said != SY_IDLE_POWER_FAULT || strstr(err.text, SY_NODE_CONF ", line "));
	free(copy);
	return said;
}

/* A comment changes nothing, a line that is wrong makes all of it void, and where nothing was said
 * one line more says it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *node = text_of(data, size), *file = first_line(node), *more = NULL;
	double watts, again;
	int said;

	if (strlen(node) < MOST_NAME && strlen(file) < 512) {
		said = answer(file, node, &watts);
		must(asprintf(&more, "# a comment\n%s\n\n", file) > 0);
		must(answer(more, node, &again) == said);
		must(said != 0 || watts == again);
		free(more);
		must(asprintf(&more, "%s\nidle_powers 1\n", file) > 0);
		must(answer(more, node, &again) == SY_IDLE_POWER_FAULT);
		free(more);
		must(asprintf(&more, "%s\nidle_power 62.5\n", file) > 0);
		must(answer(more, node, &again) == (said == -1 ? 0 : said));
		must(said != -1 || again == 62.5);
		free(more);
	}
	free(node);
	return 0;
}
