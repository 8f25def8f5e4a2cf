#include "program/policy_options.h"

#include "netem/spec/values.h"

#include <string.h>

void sy_asking_init(struct sy_asking *asking)
{
	asking->policy = SY_POLICY_PATH;
	asking->no_policy = asking->told_who = false;
	asking->asker = (struct sy_asker){.groups = asking->groups, .exclusive = SY_NOT_KNOWN};
}

int sy_asking_id(const char *text, unsigned *id, struct sy_error *err)
{
	int64_t number;

	/* The last number means "none" to the kernel. */
	if (sy_parse_count(text, 0, UINT32_MAX - 1, &number, err) < 0)
		return -1;
	*id = (unsigned)number;
	return 1;
}

static int take_group(struct sy_asking *asking, const char *text, struct sy_error *err)
{
	struct sy_asker *asker = &asking->asker;

	asking->told_who = true;
	if (asker->group_count == SY_ASKING_GROUPS)
		return sy_fail(err, "expected at most %d of them", SY_ASKING_GROUPS);
	return sy_asking_id(text, &asking->groups[asker->group_count++], err);
}

static int take_exclusive(struct sy_asking *asking, const char *text, struct sy_error *err)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return sy_fail(err, "expected yes or no");
	asking->asker.exclusive = *text == 'y' ? SY_YES : SY_NO;
	return 1;
}

int sy_asking_take(struct sy_asking *asking, int option, const char *text, struct sy_error *err)
{
	switch (option) {
	case 'f':
		asking->policy = text;
		return 1;
	case 'n':
		asking->no_policy = true;
		return 1;
	case 'p':
		asking->asker.partition = text;
		return 1;
	case 'u':
		asking->told_who = true;
		return sy_asking_id(text, &asking->asker.uid, err);
	case 'g':
		return take_group(asking, text, err);
	case 'x':
		return take_exclusive(asking, text, err);
	default:
		return 0;
	}
}
