#include "netem/spec/parts.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_CHARACTERS 64 /* of a wrong part in an error */
#define SHOWN_SIZE	 (SHOWN_CHARACTERS * 4 + 4)

/* A byte as an error shows it: its length. */
static size_t show_byte(unsigned char byte, char *shown, size_t size)
{
	bool printable = byte >= ' ' && byte <= '~';

	return (size_t)(printable ? snprintf(shown, size, "%c", byte)
				  : snprintf(shown, size, "\\x%02x", byte));
}

/* A part as an error shows it; long ones are cut. */
static const char *show(const char *part, char *shown)
{
	size_t used = 0, length = strcspn(part, ",");

	for (size_t i = 0; i < length && i < SHOWN_CHARACTERS; i++)
		used += show_byte((unsigned char)part[i], shown + used, SHOWN_SIZE - used);
	(void)snprintf(shown + used, SHOWN_SIZE - used, "%s",
		       length > SHOWN_CHARACTERS ? "..." : "");
	return shown;
}

static int fail_unknown(const char *shown, struct sy_error *err)
{
	char known[256];
	size_t used = 0;

	for (const struct sy_netem_part *part = sy_netem_parts; part->name; part++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s, ", part->name);
	return sy_fail(err, "netem: %s: unknown part; known are %sor none alone", shown, known);
}

static const struct sy_netem_part *find_part(const char *name, size_t length)
{
	for (const struct sy_netem_part *part = sy_netem_parts; part->name; part++)
		if (strlen(part->name) == length && !memcmp(part->name, name, length))
			return part;
	return NULL;
}

/* What can be said of a part before its value is read. */
static int check_part(const char *text, const struct sy_netem_part *part, unsigned int seen,
		      const char *shown, struct sy_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-=~/:%";
	size_t good = strspn(text, allowed);
	char wrong[8];

	if (!*text)
		return sy_fail(err, "netem: an empty part: expected one such as delay=50ms between "
				    "commas, and no comma at either end");
	(void)show_byte((unsigned char)text[good], wrong, sizeof(wrong));
	if (text[good])
		return sy_fail(err, "netem: %s: character '%s' has no place in a specification",
			       shown, wrong);
	if (!strcmp(text, "none"))
		return sy_fail(err, "netem: none: stands alone, expected no other part beside it");
	if (!part)
		return fail_unknown(shown, err);
	if (!strchr(text, '='))
		return sy_fail(err, "netem: %s: expected a value, such as %s=%s", shown, text,
			       part->example);
	if (seen & 1U << (part - sy_netem_parts) && !part->many)
		return sy_fail(err, "netem: %s: %s was given already, expected it once", shown,
			       part->name);
	return 0;
}

static int parse_part(char *text, unsigned int *seen, struct sy_netem *spec, struct sy_error *err)
{
	size_t length = strcspn(text, "=");
	const struct sy_netem_part *part = find_part(text, length);
	char shown[SHOWN_SIZE];
	struct sy_error why;

	(void)show(text, shown);
	if (check_part(text, part, *seen, shown, err) < 0)
		return -1;
	*seen |= 1U << (part - sy_netem_parts);
	if (part->parse(text + length + 1, spec, &why) < 0)
		return sy_fail(err, "netem: %s: %s", shown, why.text);
	return 0;
}

/* What no part can tell alone. */
static int check_whole(const char *text, const struct sy_netem *spec, struct sy_error *err)
{
	bool shapes = spec->has_delay || spec->has_loss || spec->has_gemodel ||
		      spec->has_duplicate || spec->has_corrupt || spec->has_reorder ||
		      spec->has_rate || spec->has_limit || spec->has_rto_min;

	/* tc-netem(8): "to use reordering, a delay option must be specified". */
	if (spec->reorder_ppb && !spec->delay_us)
		return sy_fail(err, "netem: reorder: needs a delay that the others wait, such as "
				    "delay=10ms,reorder=1%%");
	if (!shapes) {
		char shown[SHOWN_SIZE];

		return sy_fail(err,
			       "netem: %s: says where but not what; expected a part such as "
			       "delay=50ms too",
			       show(text, shown));
	}
	return 0;
}

static int parse_parts(const char *text, struct sy_netem *spec, struct sy_error *err)
{
	char copy[SY_NETEM_SIZE], *next = copy;
	unsigned int seen = 0;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	while (next) {
		char *part = strsep(&next, ",");

		if (parse_part(part, &seen, spec, err) < 0)
			return -1;
	}
	return check_whole(text, spec, err);
}

int sy_netem_parse(const char *text, struct sy_netem *spec, struct sy_error *err)
{
	size_t length = strlen(text);

	memset(spec, 0, sizeof(*spec));
	if (length >= SY_NETEM_SIZE)
		return sy_fail(err, "netem: a specification of %zu characters: expected at most %d",
			       length, SY_NETEM_SIZE - 1);
	if (!length)
		return sy_fail(err, "netem: an empty specification: expected parts such as "
				    "delay=50ms,loss=0.1%%, or none");
	spec->none = !strcmp(text, "none");
	if (spec->none || parse_parts(text, spec, err) == 0)
		return 0;
	memset(spec, 0, sizeof(*spec));
	return -1;
}

bool sy_netem_needs_single_packets(const struct sy_netem *spec)
{
	/* A loss of 0 % too: the baseline of a study of losses has its offloads off as well. */
	return spec->has_loss || spec->has_gemodel || spec->has_duplicate || spec->has_corrupt ||
	       spec->has_reorder;
}
