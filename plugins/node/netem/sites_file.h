/* The conditions between sites: a file of root's that `steelyard netem sites FILE --write` makes.
 * Each site has its networks, then the list of conditions that its nodes send under. How:
 * docs/netem.md.
 *
 *   site cern 10.1.0.0/24
 *   to fnal delay=60ms,loss=0.01%,to=10.2.0.0/24,to=10.2.1.7
 *   site fnal 10.2.0.0/24 10.2.1.7
 *   to cern delay=45ms,loss=0.01%,to=10.1.0.0/24
 */
#ifndef STEELYARD_NETEM_SITES_FILE_H
#define STEELYARD_NETEM_SITES_FILE_H

#include "base/error.h"
#include "base/hash.h"
#include "netem/kernel/tc_batch.h"
#include "netem/policy/policy.h"
#include "netem/spec/spec.h"

/* Addresses by which other nodes know this one: networks of one. */
struct sy_own_addresses {
	int count;
	struct sy_network item[64];
};

/* Those of all devices but loopback's and link-local ones. */
int sy_own_addresses_read(struct sy_own_addresses *own, struct sy_error *err);

#define SY_SITES_LINKS (SY_LAST_BAND - SY_FIRST_BAND + 1) /* from one site: bands of a device */

/* To one other site, or to eight of its networks. */
struct sy_sites_link {
	char to[SY_TABLE_SIZE];
	struct sy_netem spec;
};

struct sy_sites {
	char own_site[SY_TABLE_SIZE]; /* this node's */
	char sha256[SY_SHA256_SIZE];  /* of the file */
	int count;
	struct sy_sites_link link[SY_SITES_LINKS];
};

/* Read FOLDER/NAME.sites: the conditions of the site that has one of the `own` addresses. -1 with
 * the file, the line and what was expected; also when no site, or more than one, has one of them.
 */
int sy_sites_read(const char *folder, const char *name, const struct sy_own_addresses *own,
		  struct sy_sites *sites, struct sy_error *err);

/* Root's file, readable for all. The policy limits it: each link must be within its bounds. NULL:
 * no policy. */
int sy_sites_check_policy(const struct sy_sites *sites, const struct sy_policy *policy,
			  struct sy_error *err);

#endif
