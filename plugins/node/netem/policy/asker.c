/* Who may ask: users, groups, partitions, exclusive jobs. */
#include "netem/policy/parts.h"

#include "base/file.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#define NSS_SIZE_MAX (1 << 24) /* a group of a million members */

/* The number of a word that is one; the whole of it, or -1. */
static int64_t number_of(const char *word)
{
	int64_t number;

	return sy_parse_count(word, 0, UINT32_MAX, &number, NULL) == 0 ? number : -1;
}

static bool is_user(const char *word, uid_t uid)
{
	char buffer[16384];
	struct passwd entry, *found = NULL;

	if (number_of(word) >= 0)
		return number_of(word) == uid;
	return getpwnam_r(word, &entry, buffer, sizeof(buffer), &found) == 0 && found &&
	       found->pw_uid == uid;
}

/* A group's number, by its name or as it stands; -1 when nobody knows it. */
static int64_t group_of(const char *word)
{
	int64_t number = number_of(word);
	struct group entry, *found = NULL;
	int failed = number < 0 ? ERANGE : 0;

	for (size_t size = 4096; failed == ERANGE && size <= NSS_SIZE_MAX; size *= 4) {
		cleanup_free char *buffer = malloc(size);

		failed = buffer ? getgrnam_r(word, &entry, buffer, size, &found) : ENOMEM;
		if (!failed && found)
			number = found->gr_gid;
	}
	return number;
}

static bool is_member(const char *word, const struct sy_asker *asker)
{
	int64_t group = group_of(word);

	for (size_t i = 0; i < asker->group_count; i++)
		if (group == asker->groups[i])
			return true;
	return false;
}

/* In one of the two lists; with no list, everybody. */
static bool is_allowed_person(const struct sy_policy *policy, const struct sy_asker *asker)
{
	bool no_list = !policy->users.count && !policy->groups.count;

	if (no_list || asker->uid == 0)
		return true;
	for (int i = 0; i < policy->users.count; i++)
		if (is_user(policy->users.word[i], asker->uid))
			return true;
	for (int i = 0; i < policy->groups.count; i++)
		if (!asker->group_count || is_member(policy->groups.word[i], asker))
			return true;
	return false;
}

/* A job submitted to several partitions has "a,b": it may start in any of them, so all count. */
static bool is_allowed_partition(const struct sy_policy *policy, const struct sy_asker *asker)
{
	const char *name = asker->partition;

	if (!policy->partitions.count || !name || asker->uid == 0)
		return true;
	for (;;) {
		size_t length = strcspn(name, ",");
		bool found = false;

		for (int i = 0; i < policy->partitions.count && !found; i++)
			found = strlen(policy->partitions.word[i]) == length &&
				!strncmp(policy->partitions.word[i], name, length);
		if (!found)
			return false;
		if (!name[length])
			return true;
		name += length + 1;
	}
}

int sy_policy_check_asker(const struct sy_policy *policy, const struct sy_asker *asker,
			  const char *what, struct sy_error *err)
{
	if (!policy->there)
		return sy_fail(err,
			       "%s: not allowed on this machine, since there is no %s: an "
			       "administrator has to write it (docs/netem.md)",
			       what, policy->path);
	if (!policy->enabled)
		return sy_fail(err, "%s: switched off on this machine: %s has no 'enabled yes'",
			       what, policy->path);
	if (!is_allowed_person(policy, asker))
		return sy_fail(err, "%s: user %" PRIuMAX " is not among the users and groups of %s",
			       what, (uintmax_t)asker->uid, policy->path);
	if (!is_allowed_partition(policy, asker))
		return sy_fail(err, "%s: not in partition %.80s: %s allows other ones", what,
			       asker->partition, policy->path);
	if (policy->exclusive_only && asker->exclusive == SY_NO)
		return sy_fail(err,
			       "%s: only for jobs that have their nodes for themselves "
			       "(exclusive_only in %s): ask for --exclusive",
			       what, policy->path);
	return 0;
}
