#include "netem/policy/policy.h"

#include "base/file.h"
#include "netem/policy/contents.h"
#include "netem/spec/loss.h"

#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
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

static int check_asker(const struct sy_policy *policy, const struct sy_asker *asker,
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

static int check_time(const char *part, int64_t us, int64_t max_us, const char *key,
		      const struct sy_policy *policy, struct sy_error *err)
{
	char asked[SY_UNIT_SIZE], most[SY_UNIT_SIZE];

	if (us <= max_us)
		return 0;
	return sy_fail(err, "netem: %s %s: at most %s is allowed here (%s in %s)", part,
		       sy_format_time(us, asked), sy_format_time(max_us, most), key, policy->path);
}

static int check_percent(const char *part, int32_t ppb, int32_t max_ppb, const char *key,
			 const struct sy_policy *policy, struct sy_error *err)
{
	char asked[SY_UNIT_SIZE], most[SY_UNIT_SIZE];

	if (ppb <= max_ppb)
		return 0;
	return sy_fail(err, "netem: %s %s: at most %s is allowed here (%s in %s)", part,
		       sy_format_percent(ppb, asked), sy_format_percent(max_ppb, most), key,
		       policy->path);
}

static int check_most(const struct sy_policy *policy, const struct sy_netem *spec,
		      struct sy_error *err)
{
	double variance;
	int32_t burst_ppb =
	    spec->has_gemodel
		? (int32_t)(0.5 + SY_WHOLE_PPB * sy_gemodel_loss(&spec->gemodel, &variance))
		: 0;

	if (check_time("delay", spec->delay_us, policy->max_delay_us, "max_delay", policy, err) ||
	    check_time("jitter", spec->jitter_us, policy->max_jitter_us, "max_jitter", policy,
		       err) ||
	    check_percent("loss", spec->loss_ppb, policy->max_loss_ppb, "max_loss", policy, err) ||
	    check_percent("loss=gemodel with a mean loss of", burst_ppb, policy->max_loss_ppb,
			  "max_loss", policy, err) ||
	    check_percent("duplicate", spec->duplicate_ppb, policy->max_duplicate_ppb,
			  "max_duplicate", policy, err) ||
	    check_percent("corrupt", spec->corrupt_ppb, policy->max_corrupt_ppb, "max_corrupt",
			  policy, err) ||
	    check_percent("reorder", spec->reorder_ppb, policy->max_reorder_ppb, "max_reorder",
			  policy, err))
		return -1;
	if (spec->limit_packets > policy->max_limit_packets)
		return sy_fail(err,
			       "netem: limit %" PRId64 ": at most %" PRId64
			       " packets are allowed here (max_limit in %s)",
			       spec->limit_packets, policy->max_limit_packets, policy->path);
	return 0;
}

static int check_least(const struct sy_policy *policy, const struct sy_netem *spec,
		       struct sy_error *err)
{
	char asked[SY_UNIT_SIZE], least[SY_UNIT_SIZE];

	if (spec->has_rate && spec->rate_bit_per_s < policy->min_rate_bit_per_s)
		return sy_fail(err, "netem: rate %s: at least %s is allowed here (min_rate in %s)",
			       sy_format_rate(spec->rate_bit_per_s, asked),
			       sy_format_rate(policy->min_rate_bit_per_s, least), policy->path);
	if (spec->has_rto_min && spec->rto_min_us < policy->min_rto_us)
		return sy_fail(err,
			       "netem: rto_min %s: at least %s is allowed here (min_rto in %s)",
			       sy_format_time(spec->rto_min_us, asked),
			       sy_format_time(policy->min_rto_us, least), policy->path);
	return 0;
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
	char asked[SY_UNIT_SIZE], text[SY_UNIT_SIZE];

	for (int i = 0; i < spec->to_count; i++) {
		const struct sy_network *spared = find_outer(&policy->protect, &spec->to[i]);

		(void)sy_format_network(&spec->to[i], asked);
		if (spared)
			return sy_fail(err, "netem: to=%s: is never shaped here (protect %s in %s)",
				       asked, sy_format_network(spared, text), policy->path);
		if (policy->destinations.count && !find_outer(&policy->destinations, &spec->to[i]))
			return sy_fail(err,
				       "netem: to=%s: lies in none of the destinations that "
				       "%s allows, such as %s",
				       asked, policy->path,
				       sy_format_network(policy->destinations.network, text));
	}
	if (policy->destinations.count && !spec->to_count)
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

int sy_policy_allows_netem(const struct sy_policy *policy, const struct sy_netem *spec,
			   const struct sy_asker *asker, struct sy_error *err)
{
	if (spec->none)
		return 0;
	if (check_asker(policy, asker, "netem", err) < 0)
		return -1;
	if (!policy->netem)
		return sy_fail(err, "netem: switched off on this machine: netem no in %s",
			       policy->path);
	if (check_most(policy, spec, err) < 0 || check_least(policy, spec, err) < 0 ||
	    check_destinations(policy, spec, err) < 0)
		return -1;
	return check_named_device(policy, spec->device, err);
}

/* `what` is the wish in a complaint, `key` the line of the policy that would allow it. */
static int check_switch(const struct sy_policy *policy, const struct sy_asker *asker,
			const char *what, const char *key, bool on, struct sy_error *err)
{
	if (check_asker(policy, asker, what, err) < 0)
		return -1;
	if (!on)
		return sy_fail(err, "%s: switched off on this machine: %s has no '%s yes'", what,
			       policy->path, key);
	return 0;
}

int sy_policy_allows_cache(const struct sy_policy *policy, const struct sy_asker *asker,
			   struct sy_error *err)
{
	return check_switch(policy, asker, "cache=cold", "cache", policy->cache, err);
}

int sy_policy_allows_capture(const struct sy_policy *policy, const struct sy_asker *asker,
			     struct sy_error *err)
{
	return check_switch(policy, asker, "capture", "capture", policy->capture, err);
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

int64_t sy_policy_capture_max_bytes(const struct sy_policy *policy)
{
	return policy->capture_max_bytes;
}

int64_t sy_policy_cvmfs_quota_bytes(const struct sy_policy *policy)
{
	return policy->cvmfs_quota_bytes;
}
