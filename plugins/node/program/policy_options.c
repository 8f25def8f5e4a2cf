#include "program/policy_options.h"

#include "netem/spec/values.h"

#include <string.h>

void sy_policy_options_init(struct sy_policy_options *options)
{
	options->policy = SY_POLICY_PATH;
	options->no_policy = options->has_requester = false;
	options->requester =
	    (struct sy_requester){.groups = options->groups, .exclusive = SY_NOT_KNOWN};
}

int sy_policy_options_id(const char *text, unsigned *id, struct sy_error *err)
{
	int64_t number;

	/* The last number means "none" to the kernel. */
	if (sy_parse_count(text, 0, UINT32_MAX - 1, &number, err) < 0)
		return -1;
	*id = (unsigned)number;
	return 1;
}

static int parse_group(struct sy_policy_options *options, const char *text, struct sy_error *err)
{
	struct sy_requester *requester = &options->requester;

	options->has_requester = true;
	if (requester->group_count == SY_POLICY_OPTIONS_GROUPS)
		return sy_fail(err, "expected at most %d of them", SY_POLICY_OPTIONS_GROUPS);
	return sy_policy_options_id(text, &options->groups[requester->group_count++], err);
}

static int parse_exclusive(struct sy_policy_options *options, const char *text,
			   struct sy_error *err)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return sy_fail(err, "expected yes or no");
	options->requester.exclusive = *text == 'y' ? SY_YES : SY_NO;
	return 1;
}

int sy_policy_options_parse(struct sy_policy_options *options, int option, const char *text,
			    struct sy_error *err)
{
	switch (option) {
	case 'f':
		options->policy = text;
		return 1;
	case 'n':
		options->no_policy = true;
		return 1;
	case 'p':
		options->requester.partition = text;
		return 1;
	case 'u':
		options->has_requester = true;
		return sy_policy_options_id(text, &options->requester.uid, err);
	case 'g':
		return parse_group(options, text, err);
	case 'x':
		return parse_exclusive(options, text, err);
	default:
		return 0;
	}
}
