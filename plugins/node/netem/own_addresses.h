/* By which addresses others know this node. */
#ifndef STEELYARD_NETEM_OWN_ADDRESSES_H
#define STEELYARD_NETEM_OWN_ADDRESSES_H

#include "base/error.h"
#include "netem/spec/spec.h"

struct sy_own_addresses {
	int count;
	struct sy_network item[64]; /* networks of one */
};

/* Those of all devices but loopback's and link-local ones. */
int sy_own_addresses_read(struct sy_own_addresses *own, struct sy_error *err);

#endif
