#include "meters/meter_file_text.h"

#include "base/number.h"

#include <string.h>

#define MOST	  9000000000000 /* J, W, s: in µ they fit into 63 bits */
#define LEAST_US  100000
#define MOST_US	  60000000
#define PERIOD_US 5000000

enum key { COVERS, UNIT, WATTS, JOULES, AT, PERIOD, MEAN, RANGE, RESOLUTION, KEYS };

static const char *const keys[KEYS] = {"covers", "unit", "watts", "joules",    "at",
				       "period", "mean", "range", "resolution"};

/* "344", "12345.678": in µ; what lies behind the sixth digit is left out. */
static bool read_micro(const char *text, int64_t *micro)
{
	int64_t whole, part = 0;
	const char *at = sy_number(text, &whole);

	if (!at || whole > MOST)
		return false;
	if (*at == '.' && at[1])
		for (int64_t place = 100000; *++at >= '0' && *at <= '9'; place /= 10)
			part += (*at - '0') * place;
	*micro = whole * 1000000 + part;
	return !*at;
}

static bool read_domain(const char *text, enum sy_domain *domain)
{
	for (int i = SY_DOMAIN_NODE; i < SY_DOMAIN_ACCELERATOR; i++) {
		if (strcmp(text, sy_domain_name((enum sy_domain)i)) != 0)
			continue;
		*domain = (enum sy_domain)i;
		return true;
	}
	return false;
}

static bool read_value(struct sy_file_said *told, enum key key, const char *text)
{
	int64_t *const places[KEYS] = {
	    [WATTS] = &told->value,	     [JOULES] = &told->value, [AT] = &told->at_us,
	    [PERIOD] = &told->period_us,     [MEAN] = &told->mean_us, [RANGE] = &told->range_uj,
	    [RESOLUTION] = &told->resolution};

	if (key == COVERS)
		return read_domain(text, &told->domain);
	if (key != UNIT)
		return read_micro(text, places[key]);
	told->unit = text[strspn(text, "0123456789")] ? -1 : sy_meter_unit(text);
	return told->unit >= 0;
}

static int read_line(struct sy_file_said *told, bool *seen, char *line, struct sy_error *err)
{
	char *value = line + strcspn(line, " ");
	enum key key = COVERS;

	if (*value)
		*value++ = '\0';
	while (key < KEYS && strcmp(line, keys[key]) != 0)
		key++;
	if (key == KEYS)
		return sy_fail(err, "'%.20s' is none of covers, unit, watts, joules, at, …", line);
	if (seen[key])
		return sy_fail(err, "%s is said twice", line);
	if (!read_value(told, key, value))
		return sy_fail(err, "%s is '%.20s': expected %s", line, value,
			       key == COVERS ? "node, package, dram, …"
			       : key == UNIT ? "0, 1, …"
					     : "a number");
	seen[key] = true;
	return 0;
}

static int judge(struct sy_file_said *told, const bool *seen, struct sy_error *err)
{
	told->power = seen[WATTS];
	if (seen[WATTS] == seen[JOULES])
		return sy_fail(err, "expected watts or joules, and not both");
	if (!seen[COVERS] || !seen[AT] || !told->at_us)
		return sy_fail(err, "it does not say %s", seen[COVERS] ? "at" : "covers");
	if (!seen[PERIOD])
		told->period_us = PERIOD_US;
	if (told->period_us < LEAST_US || told->period_us > MOST_US)
		return sy_fail(err, "its period is not between 0.1 and 60 s");
	if ((seen[RANGE] && !seen[JOULES]) || (seen[MEAN] && !seen[WATTS]))
		return sy_fail(err, "a range is of joules, a mean of watts");
	return told->mean_us > MOST_US ? sy_fail(err, "its mean is over more than 60 s") : 0;
}

int sy_file_said_parse(char *text, struct sy_file_said *told, struct sy_error *err)
{
	bool seen[KEYS] = {false};

	*told = (struct sy_file_said){.unit = -1};
	for (char *line = strsep(&text, "\n"); line; line = strsep(&text, "\n"))
		if (*line && *line != '#' && read_line(told, seen, line, err) < 0)
			return -1;
	return judge(told, seen, err);
}
