/* The contents of a policy, for policy.c and policy_file.c. */
#ifndef STEELYARD_NETEM_POLICY_FIELDS_H
#define STEELYARD_NETEM_POLICY_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "netem/spec/values.h"

#define SY_POLICY_ITEMS 64

/* Room is left among the 32 filters of netem/netem.h (SY_PROTECTED_MAX) for the scheduler's
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

/* `macro` of the field that holds a value's bound, where it has one of its own. */
#define SY_BOUND_MOST(id, macro)  macro(max_##id)
#define SY_BOUND_LEAST(id, macro) macro(min_##id)
#define SY_BOUND_MEAN(id, macro)
#define SY_BOUND_NO(id, macro)

struct sy_policy {
	char *path, *text; /* text: the file, cut up; words point into it */
	bool exists;	   /* false: no such file */
	bool enabled, netem, cache, exclusive_only, rdma;
/* int64_t max_delay_us, min_rate_bit_per_s …; int32_t max_loss_ppb … */
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, ...)             \
	SY_BOUND_##bound(id, SY_DECLARE_##kind)
#include "facts/netem_keys.def"
	int64_t cvmfs_quota_bytes;
	struct sy_policy_words devices, users, groups, partitions;
	struct sy_policy_networks destinations, protect;
	char peer[SY_UNIT_SIZE]; /* "": none */
};

#endif
