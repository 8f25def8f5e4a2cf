#include "job/wishes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "netem/spec/values.h"

#define SHOWN_MAX 80 /* how much of a faulty value a message repeats */

const struct sy_wish_word sy_wish_words[SY_WISHES] = {
    {"tag", "KEY=VALUE", "note a condition with the job's record; repeatable", false},
    {"sample-rate", "HZ", "samples of energy, CPU, I/O and network a second; 0: totals only",
     false},
    {"netem", "SPEC", "network conditions, say delay=50ms,loss=0.1%; none: as they are", true},
    {"cache", "cold|warm|cold:cvmfs=MB",
     "cold: drop the nodes' page caches before the job, and limit CVMFS' own", true},
};

static int take_netem(struct sy_wishes *wishes, const char *text, struct sy_error *err)
{
	wishes->has_netem = false;
	if (sy_netem_parse(text, &wishes->netem, err) < 0)
		return -1;
	wishes->has_netem = true;
	return 0;
}

static int take_cache(struct sy_wishes *wishes, const char *text, struct sy_error *err)
{
	static const char limited[] = "cold:cvmfs=";
	int64_t limit_mb = 0;

	if (strncmp(text, limited, strlen(limited)) == 0) {
		if (sy_parse_count(text + strlen(limited), 1, SY_CVMFS_MB_MAX, &limit_mb, err) < 0)
			return -1;
	} else if (strcmp(text, "cold") != 0 && strcmp(text, "warm") != 0) {
		return sy_fail(err, "expected cold, warm or cold:cvmfs=MB");
	}
	wishes->cache = text[0] == 'c' ? SY_CACHE_COLD : SY_CACHE_WARM;
	wishes->cvmfs_mb = limit_mb;
	return 0;
}

int sy_wish_take(struct sy_wishes *wishes, enum sy_wish which, const char *text, double max_rate_hz,
		 struct sy_error *err)
{
	switch (which) {
	case SY_WISH_TAG:
		return sy_tags_add(&wishes->tags, text, err);
	case SY_WISH_RATE:
		if (sy_rate_parse(text, max_rate_hz, &wishes->rate_hz, err) < 0)
			return -1;
		wishes->has_rate = true;
		return 0;
	case SY_WISH_NETEM:
		return take_netem(wishes, text, err);
	case SY_WISH_CACHE:
		return take_cache(wishes, text, err);
	default:
		return sy_fail(err, "unknown");
	}
}

void sy_wish_tag_cache(struct sy_wishes *wishes)
{
	char limit[64];

	if (wishes->cache == SY_CACHE_AS_IT_IS)
		return;
	(void)snprintf(limit, sizeof(limit), "cache=cold:cvmfs=%" PRId64, wishes->cvmfs_mb);
	(void)sy_tags_add(&wishes->tags,
			  wishes->cvmfs_mb		   ? limit
			  : wishes->cache == SY_CACHE_COLD ? "cache=cold"
							   : "cache=warm",
			  NULL);
}

bool sy_wishes_change_node(const struct sy_wishes *wishes)
{
	return (wishes->has_netem && !wishes->netem.none) || wishes->cache == SY_CACHE_COLD;
}

static void show(char to[SHOWN_MAX + 4], const char *text)
{
	(void)snprintf(to, SHOWN_MAX + 4, "%.*s%s", SHOWN_MAX, text,
		       strlen(text) > SHOWN_MAX ? "..." : "");
	for (char *c = to; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

void sy_wish_said(char *to, size_t size, enum sy_wish which, const char *text,
		  const struct sy_error *err)
{
	const struct sy_wish_word *word = &sy_wish_words[which];
	char shown[SHOWN_MAX + 4];

	show(shown, text);
	(void)snprintf(to, size, "--%s=%s: %.*s", word->name, shown, (int)size - SHOWN_MAX - 32,
		       err->text);
}
