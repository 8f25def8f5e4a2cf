/* The administrator's file: the first line is what a user asks for, the others are the policy. */
#include "fuzz.h"

#include "netem/policy/policy.h"
#include "netem/spec/spec.h"

static const struct sy_requester somebody = {.uid = 65534, .exclusive = SY_YES};

/* 1: allowed, 0: refused with a sentence, -1: no such policy. */
static int answer(const char *policy_text, size_t size, const struct sy_netem *spec)
{
	struct sy_error err = {0};
	struct sy_policy *policy = sy_policy_read(file_of(policy_text, size), false, &err);
	int allowed;

	if (!policy) {
		must_say_why(&err);
		return -1;
	}
	allowed = sy_policy_allows_netem(policy, spec, &somebody, &err) == 0;
	if (!allowed)
		must_say_why(&err);
	(void)sy_policy_allows_cache(policy, &somebody, &err);
	(void)sy_policy_allows_device(policy, "eth0", &err);
	must(sy_policy_cvmfs_quota_bytes(policy) >= 0);
	sy_policy_free(policy);
	return allowed;
}

/* A comment changes nothing, and who has switched it off allows nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size), *policy = first_line(text), *more = NULL;
	struct sy_error err;
	struct sy_netem spec;
	int said;

	if (sy_netem_parse(text, &spec, &err) == 0) {
		said = answer(policy, strlen(policy), &spec);
		if (said >= 0 && asprintf(&more, "# a comment\n%s\n", policy) > 0)
			must(answer(more, strlen(more), &spec) == said);
		must(said != 1 || spec.none || strstr(policy, "enabled"));
		free(more);
	}
	free(text);
	return 0;
}
