/* Who is how far from whom: a file of root's that `steelyard netem sites FILE --write` makes, which
 * says for every site what its nodes send to the others under. How: docs/netem.md.
 *
 *   site cern 10.1.0.0/24
 *   site fnal 10.2.0.0/24 10.2.1.7
 *   link cern fnal delay=60ms,loss=0.01%
 *   link fnal cern delay=45ms,loss=0.01%
 */
#ifndef STEELYARD_NETEM_SITES_H
#define STEELYARD_NETEM_SITES_H

#include "base/error.h"
#include "base/sha256.h"
#include "netem/kernel/plan.h"
#include "netem/own_addresses.h"
#include "netem/policy/policy.h"
#include "netem/spec/spec.h"

#define SY_SITES	  "/etc/steelyard/netem"
#define SY_SITES_MOST	  256				     /* sites */
#define SY_SITES_NETWORKS 4096				     /* of all of them */
#define SY_SITES_PAIRS	  2048				     /* links in a file */
#define SY_SITES_LINKS	  (SY_LAST_BAND - SY_FIRST_BAND + 1) /* from one site: bands of a device */

/* To one other site, or to eight of its networks. */
struct sy_sites_link {
	char to[SY_TABLE_SIZE];
	struct sy_netem spec; /* its networks are in `to` */
};

struct sy_sites {
	char here[SY_TABLE_SIZE];    /* this node's */
	char sha256[SY_SHA256_SIZE]; /* of the file */
	int count;
	struct sy_sites_link link[SY_SITES_LINKS];
};

/* FOLDER/NAME.sites, and in it the links that begin at the site which has one of `own`. -1 with the
 * file, the line, what was expected; also when the node is in no site, or in several. */
int sy_sites_read(const char *folder, const char *name, const struct sy_own_addresses *own,
		  struct sy_sites *sites, struct sy_error *err);

/* Root has written the file, for everybody; the policy says what jobs may have of it. NULL: there
 * is none. */
int sy_sites_allowed(const struct sy_sites *sites, const struct sy_policy *policy,
		     struct sy_error *err);

#endif
