/* Addresses that no condition touches: the scheduler's. */
#ifndef STEELYARD_JOB_SCHEDULER_ADDRESSES_H
#define STEELYARD_JOB_SCHEDULER_ADDRESSES_H

#include "base/error.h"
#include "netem/netem.h"
#include "netem/spec/spec.h"

#define SY_ADDRESS_SIZE 64 /* more than INET6_ADDRSTRLEN */

/* Addresses as text, each once. */
struct sy_addresses {
	int count;
	char text[SY_PROTECTED_MAX][SY_ADDRESS_SIZE];
};

/* Every address of a host; a name that is not known has none. */
void sy_addresses_add_host(struct sy_addresses *to, const char *host);

/* -1 with a sentence when a `to=` names nothing but such an address: it would never be shaped.
 * `whose`: the daemons' names. */
int sy_refuse_scheduler(const struct sy_netem *spec, const struct sy_addresses *addresses,
			const char *whose, struct sy_error *err);

/* The peer whose round-trip times are most relevant: the only host that `to` names, else `peer`. */
void sy_find_peer(const struct sy_netem *spec, char peer[SY_ADDRESS_SIZE]);

#endif
