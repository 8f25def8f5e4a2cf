#include "netem/policy/policy.h"

#include "base/file.h"
#include "netem/policy/policy_fields.h"
#include "netem/spec/loss_statistics.h"

#include <errno.h>
#include <fnmatch.h>
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

/* The id of a group that is given by name or number; -1: unknown. */
static int64_t find_group_id(const char *word)
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

static bool is_member(const char *word, const struct sy_requester *requester)
{
	int64_t group = find_group_id(word);

	for (size_t i = 0; i < requester->group_count; i++)
		if (group == requester->groups[i])
			return true;
	return false;
}

/* In one of the two lists; with no list, everybody. */
static bool is_allowed_person(const struct sy_policy *policy, const struct sy_requester *requester)
{
	bool no_list = !policy->users.count && !policy->groups.count;

	if (no_list || requester->uid == 0)
		return true;
	for (int i = 0; i < policy->users.count; i++)
		if (is_user(policy->users.word[i], requester->uid))
			return true;
	for (int i = 0; i < policy->groups.count; i++)
		if (!requester->group_count || is_member(policy->groups.word[i], requester))
			return true;
	return false;
}

/* A job submitted to several partitions has "a,b": it may start in any of them, so all count. */
static bool is_allowed_partition(const struct sy_policy *policy,
				 const struct sy_requester *requester)
{
	const char *name = requester->partition;

	if (!policy->partitions.count || !name || requester->uid == 0)
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

/* The program does not know whose scheduler it serves. */
#define SY_ASK_WHOLE_NODES                                                                         \
	"--exclusive (Slurm), -n (Torque) or -l select=1:ncpus=1 -l place=scatter:excl (OpenPBS)"

static int check_asker(const struct sy_policy *policy, const struct sy_requester *requester,
		       const char *what, struct sy_error *err)
{
	if (!policy->exists)
		return sy_fail(err,
			       "%s: not allowed on this machine, since there is no %s: an "
			       "administrator has to write it (docs/netem.md)",
			       what, policy->path);
	if (!policy->enabled)
		return sy_fail(err, "%s: switched off on this machine: %s has no 'enabled yes'",
			       what, policy->path);
	if (!is_allowed_person(policy, requester))
		return sy_fail(err, "%s: user %" PRIuMAX " is not among the users and groups of %s",
			       what, (uintmax_t)requester->uid, policy->path);
	if (!is_allowed_partition(policy, requester))
		return sy_fail(err, "%s: not in partition %.80s: %s allows other ones", what,
			       requester->partition, policy->path);
	if (policy->exclusive_only && requester->exclusive == SY_NO)
		return sy_fail(err,
			       "%s: only for jobs that have their nodes for themselves "
			       "(exclusive_only in %s): ask for " SY_ASK_WHOLE_NODES,
			       what, policy->path);
	return 0;
}

struct bound {
	const char *part, *key;
	enum sy_kind kind;
	bool least;
	int64_t requested, allowed;
};

static int check_bound(const struct bound *bound, const struct sy_policy *policy,
		       struct sy_error *err)
{
	char requested[SY_UNIT_SIZE], allowed[SY_UNIT_SIZE];

	if (bound->least ? bound->requested >= bound->allowed : bound->requested <= bound->allowed)
		return 0;
	return sy_fail(
	    err, "netem: %s %s: at %s %s%s allowed here (%s in %s)", bound->part,
	    sy_format_kind(bound->kind, bound->requested, requested),
	    bound->least ? "least" : "most", sy_format_kind(bound->kind, bound->allowed, allowed),
	    bound->kind == SY_KIND_COUNT ? " packets are" : " is", bound->key, policy->path);
}

static int check_all(const struct bound *bounds, size_t count, const struct sy_policy *policy,
		     struct sy_error *err)
{
	for (size_t i = 0; i < count; i++)
		if (check_bound(&bounds[i], policy, err) < 0)
			return -1;
	return 0;
}

#define MOST_MOST(id, kind, name)                                                                  \
	{#id,                                                                                      \
	 name,                                                                                     \
	 SY_KIND_##kind,                                                                           \
	 false,                                                                                    \
	 spec->SY_FIELD_##kind(id),                                                                \
	 policy->SY_FIELD_##kind(max_##id)},
#define MOST_MEAN(id, kind, name)                                                                  \
	{"loss=" #id " with a mean loss of",                                                       \
	 name,                                                                                     \
	 SY_KIND_PERCENT,                                                                          \
	 false,                                                                                    \
	 spec->has_##id ? mean_ppb : 0,                                                            \
	 policy->max_loss_ppb},
#define MOST_LEAST(...)
#define MOST_NO(...)
#define LEAST_LEAST(id, kind, name)                                                                \
	{#id,                                                                                      \
	 name,                                                                                     \
	 SY_KIND_##kind,                                                                           \
	 true,                                                                                     \
	 spec->has_##id ? spec->SY_FIELD_##kind(id) : INT64_MAX,                                   \
	 policy->SY_FIELD_##kind(min_##id)},
#define LEAST_MOST(...)
#define LEAST_MEAN(...)
#define LEAST_NO(...)

int sy_policy_allows_values(const struct sy_policy *policy, const struct sy_netem *spec,
			    struct sy_error *err)
{
	int32_t mean_ppb = (int32_t)(0.5 + SY_WHOLE_PPB * sy_mean_loss(spec));
	const struct bound bounds[] = {
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, name, ...)       \
	MOST_##bound(id, kind, name)
#include "facts/netem_keys.def"
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, name, ...)       \
	LEAST_##bound(id, kind, name)
#include "facts/netem_keys.def"
	    /* The longest that a packet waits for its slot. */
	    {"slot", "max_delay", SY_KIND_TIME, false, spec->slot.max_us, policy->max_delay_us},
	};

	return check_all(bounds, sizeof(bounds) / sizeof(bounds[0]), policy, err);
}

static const struct sy_network *find_outer(const struct sy_policy_networks *networks,
					   const struct sy_network *inner)
{
	for (int i = 0; i < networks->count; i++)
		if (sy_network_contains(&networks->network[i], inner))
			return &networks->network[i];
	return NULL;
}

static int check_destinations(const struct sy_policy *policy, const struct sy_netem *spec,
			      struct sy_error *err)
{
	char requested[SY_UNIT_SIZE], text[SY_UNIT_SIZE];

	for (int i = 0; i < spec->to_count; i++) {
		const struct sy_network *spared = find_outer(&policy->protect, &spec->to[i]);

		(void)sy_format_network(&spec->to[i], requested);
		if (spared)
			return sy_fail(err, "netem: to=%s: is never shaped here (protect %s in %s)",
				       requested, sy_format_network(spared, text), policy->path);
		if (policy->destinations.count && !find_outer(&policy->destinations, &spec->to[i]))
			return sy_fail(err,
				       "netem: to=%s: lies in none of the destinations that "
				       "%s allows, such as %s",
				       requested, policy->path,
				       sy_format_network(policy->destinations.network, text));
	}
	if (policy->destinations.count && !spec->to_count && !spec->has_sites)
		return sy_fail(err,
			       "netem: needs a to= here, within the destinations of %s, such as "
			       "to=%s",
			       policy->path, sy_format_network(policy->destinations.network, text));
	return 0;
}

int sy_policy_allows_device(const struct sy_policy *policy, const char *device,
			    struct sy_error *err)
{
	for (int i = 0; i < policy->devices.count; i++)
		if (fnmatch(policy->devices.word[i], device, 0) == 0)
			return 0;
	if (!policy->devices.count)
		return 0;
	return sy_fail(err, "netem: device %.*s: not among the devices of %s", SY_DEVICE_SIZE - 1,
		       device, policy->path);
}

int sy_policy_allows_rdma(const struct sy_policy *policy, const char *device, struct sy_error *err)
{
	return policy->rdma
		   ? 0
		   : sy_fail(err,
			     "netem: device %.*s has RDMA (RoCE): only its TCP/IP would be shaped, "
			     "verbs go past the kernel; an administrator may allow it (rdma allow "
			     "in %s)",
			     SY_DEVICE_SIZE - 1, device, policy->path);
}

static int check_named_device(const struct sy_policy *policy, const char *device,
			      struct sy_error *err)
{
	if (*device && !policy->devices.count)
		return sy_fail(err,
			       "netem: dev=%s: no device may be named here (%s has no devices): "
			       "leave dev= out, the route finds it",
			       device, policy->path);
	return *device ? sy_policy_allows_device(policy, device, err) : 0;
}

int sy_policy_allows_link(const struct sy_policy *policy, const struct sy_netem *spec,
			  struct sy_error *err)
{
	return sy_policy_allows_values(policy, spec, err) < 0
		   ? -1
		   : check_destinations(policy, spec, err);
}

int sy_policy_allows_netem(const struct sy_policy *policy, const struct sy_netem *spec,
			   const struct sy_requester *requester, struct sy_error *err)
{
	if (spec->none)
		return 0;
	if (check_asker(policy, requester, "netem", err) < 0)
		return -1;
	if (!policy->netem)
		return sy_fail(err, "netem: switched off on this machine: netem no in %s",
			       policy->path);
	if (sy_policy_allows_link(policy, spec, err) < 0)
		return -1;
	return check_named_device(policy, spec->device, err);
}

int sy_policy_allows_cache(const struct sy_policy *policy, const struct sy_requester *requester,
			   struct sy_error *err)
{
	if (check_asker(policy, requester, "cache=cold", err) < 0)
		return -1;
	if (!policy->cache)
		return sy_fail(err,
			       "cache=cold: switched off on this machine: %s has no 'cache yes'",
			       policy->path);
	return 0;
}

int sy_policy_protected(const struct sy_policy *policy, struct sy_network *to, int size)
{
	int count = policy->protect.count < size ? policy->protect.count : size;

	memcpy(to, policy->protect.network, (size_t)count * sizeof(*to));
	return count;
}

const char *sy_policy_peer(const struct sy_policy *policy)
{
	return *policy->peer ? policy->peer : NULL;
}

int64_t sy_policy_cvmfs_quota_bytes(const struct sy_policy *policy)
{
	return policy->cvmfs_quota_bytes;
}
