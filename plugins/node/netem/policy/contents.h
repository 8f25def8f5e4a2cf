/* What stands in a policy, for policy.c and file.c. */
#ifndef STEELYARD_NETEM_POLICY_CONTENTS_H
#define STEELYARD_NETEM_POLICY_CONTENTS_H

#include "netem/policy/policy.h"
#include "netem/spec/values.h"

/* Room is left among the 32 filters of netem/apply.h (SY_PROTECTED_MAX) for the scheduler's
 * addresses. */
#define SY_POLICY_NETWORKS 16

struct sy_policy_words {
	int count; /* 0: the key is not there, nothing is restricted by it */
	const char *word[SY_POLICY_ITEMS];
};

struct sy_policy_networks {
	int count;
	struct sy_network network[SY_POLICY_NETWORKS];
};

struct sy_policy {
	char *path, *text; /* text: the file, cut up; words point into it */
	bool there;	   /* false: no such file */
	bool enabled, netem, cache, capture, exclusive_only, rdma;
	int64_t max_delay_us, max_jitter_us, min_rto_us;
	int64_t min_rate_bit_per_s, max_limit_packets;
	int64_t capture_max_bytes, cvmfs_quota_bytes;
	int32_t max_loss_ppb, max_duplicate_ppb, max_corrupt_ppb, max_reorder_ppb;
	struct sy_policy_words devices, users, groups, partitions;
	struct sy_policy_networks destinations, protect;
	char peer[SY_UNIT_SIZE]; /* "": none */
};

#endif
