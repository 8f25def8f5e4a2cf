/* Room netem/policy: what the admin allows, from one file of root's (docs/netem.md). policy_file.c
 * reads it, policy.c compares a request with it; policy_fields.h is what both know.
 *
 * A request is checked where it is submitted and again on the node, where the device and the files
 * of traces and sites are known. Each check returns 0, or -1 with a sentence: which part of the
 * request, what is allowed, by which file. Properties that are unknown at the moment (partition,
 * groups, exclusive node) are not checked.
 *
 * It promises: without the file nothing is allowed, nor without `enabled yes`. A file that is not
 * root's, that others may write to, that is a symbolic link, or that has a line it does not
 * understand is an error. By default conditions are for exclusive nodes only, delay, loss, rate
 * and the like are bounded, and cold caches and devices with RDMA are refused. `users`, `groups`
 * and `partitions` do not restrict root; all other lines do. `none` is always allowed, since it
 * touches nothing.
 *
 * It knows neither a scheduler nor the kernel, and changes nothing. */
#ifndef STEELYARD_NETEM_POLICY_POLICY_H
#define STEELYARD_NETEM_POLICY_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "netem/spec/spec.h"

enum sy_known { SY_NOT_KNOWN = -1, SY_NO = 0, SY_YES = 1 };

/* The requester. Properties that are unknown at submission are not checked. */
struct sy_requester {
	uid_t uid;		 /* root (0) passes the lists of users, groups and partitions */
	const gid_t *groups;	 /* his own group and the others */
	size_t group_count;	 /* 0: not known */
	const char *partition;	 /* NULL: not known, or no scheduler */
	enum sy_known exclusive; /* the job has the node for itself */
};

struct sy_policy; /* opaque: policy_fields.h */

/* 0, or -1 with one sentence: which part of the request, what the policy allows, whose policy. */
int sy_policy_allows_netem(const struct sy_policy *policy, const struct sy_netem *spec,
			   const struct sy_requester *requester, struct sy_error *err);

/* Of that only the bounds of delay, loss, rate and the like: for each line of a trace, whose file
 * is on the node alone. */
int sy_policy_allows_values(const struct sy_policy *policy, const struct sy_netem *spec,
			    struct sy_error *err);

/* Of that the bounds and the destinations: for each link of sites, whose file is on the node,
 * too. */
int sy_policy_allows_link(const struct sy_policy *policy, const struct sy_netem *spec,
			  struct sy_error *err);

int sy_policy_allows_cache(const struct sy_policy *policy, const struct sy_requester *requester,
			   struct sy_error *err);

/* Whether this device may be shaped (its name is known only on the node). */
int sy_policy_allows_device(const struct sy_policy *policy, const char *device,
			    struct sy_error *err);

/* Whether a device with RDMA next to its Ethernet may be shaped: verbs bypass the kernel. */
int sy_policy_allows_rdma(const struct sy_policy *policy, const char *device, struct sy_error *err);

/* Addresses that are never shaped, in addition to the scheduler's: how many, written to `to`. */
int sy_policy_protected(const struct sy_policy *policy, struct sy_network *to, int size);

/* The address to which round-trip times are measured by default; NULL: none. */
const char *sy_policy_peer(const struct sy_policy *policy);

int64_t sy_policy_cvmfs_quota_bytes(const struct sy_policy *policy); /* 0: left alone */

#define SY_POLICY_PATH "/etc/steelyard/netem.conf"

/* Read a policy. A missing file is a valid policy that allows nothing. A file that is not root's,
 * that others may write to, or that has a line it does not understand is an error (-> NULL): its
 * name, the line, what was expected. `must_be_root` false: tests. */
struct sy_policy *sy_policy_read(const char *path, bool must_be_root, struct sy_error *err);
void sy_policy_free(struct sy_policy *policy);

#endif
