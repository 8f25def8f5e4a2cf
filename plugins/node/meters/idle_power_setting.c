#include "meters/idle_power_setting.h"

#include "base/file.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KEY	   "idle_power"
#define BLANKS	   " \t\r"
#define SIZE_LIMIT 65536

static bool parse_watts(const char *text, double *watts)
{
	char *end;

	if (text[strspn(text, "0123456789.")]) /* nan, 0x10, 1e3 */
		return false;
	*watts = strtod(text, &end);
	return end != text && !*end && *watts <= SY_IDLE_POWER_MAX;
}

static char *next_word(char **rest)
{
	char *word;

	while ((word = strsep(rest, BLANKS)) && !*word)
		;
	return word;
}

/* One line: `pattern` is "*" where it is of all nodes, NULL where there is nothing in it. */
static int read_line(char *line, const char **pattern, double *watts, struct sy_error *err)
{
	char *fields[4] = {NULL};

	*pattern = NULL;
	line[strcspn(line, "#")] = '\0';
	for (int i = 0; i < 4; i++)
		fields[i] = next_word(&line);
	if (!fields[0])
		return 0;
	if (strcmp(fields[0], KEY) != 0)
		return sy_fail(err, "unknown key %.30s; known is " KEY, fields[0]);
	if (!fields[1] || fields[3] || !parse_watts(fields[fields[2] ? 2 : 1], watts))
		return sy_fail(err,
			       "expected " KEY " WATTS, or " KEY " NODES WATTS, in digits, at most "
			       "1000000");
	*pattern = fields[2] ? fields[1] : "*";
	return 0;
}

int sy_idle_power_find(char *text, const char *node, double *watts, struct sy_error *err)
{
	bool found = false;
	struct sy_error reason;

	for (int number = 1; text; number++) {
		const char *pattern;
		double value;

		if (read_line(strsep(&text, "\n"), &pattern, &value, &reason) < 0) {
			(void)sy_fail(err, SY_NODE_CONF ", line %d: %s", number, reason.text);
			return SY_IDLE_POWER_FAULT;
		}
		if (found || !pattern || fnmatch(pattern, node, 0) != 0)
			continue;
		*watts = value;
		found = true;
	}
	return found ? 0 : sy_fail(err, SY_NODE_CONF " says no " KEY " of this node");
}

int sy_idle_power_read(int root, const char *node, double *watts, struct sy_error *err)
{
	cleanup_free char *text = sy_read_all_at(root, SY_NODE_CONF, SIZE_LIMIT);

	if (text && strlen(text) < SIZE_LIMIT)
		return sy_idle_power_find(text, node, watts, err);
	if (!text && (errno == ENOENT || errno == ENOTDIR))
		return sy_fail(err, "no administrator has said it (" SY_NODE_CONF ")");
	if (text)
		(void)sy_fail(err, SY_NODE_CONF ": longer than %d bytes", SIZE_LIMIT - 1);
	else
		(void)sy_fail_errno(err, errno, SY_NODE_CONF);
	return SY_IDLE_POWER_FAULT;
}
