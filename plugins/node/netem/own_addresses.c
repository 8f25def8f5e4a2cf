#include "netem/own_addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* An address of a device as a network of one; false: it is of no use to others. */
static bool take(const struct ifaddrs *one, struct sy_network *network)
{
	const struct sockaddr *address = one->ifa_addr;

	*network = (struct sy_network){.family = address ? address->sa_family : AF_UNSPEC};
	if (one->ifa_flags & IFF_LOOPBACK)
		return false;
	if (network->family == AF_INET) {
		network->prefix = 32;
		memcpy(network->address,
		       &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
		return true;
	}
	if (network->family != AF_INET6)
		return false;
	network->prefix = 128;
	memcpy(network->address, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
	       16);
	return !IN6_IS_ADDR_LINKLOCAL(
	    &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

int sy_own_addresses_read(struct sy_own_addresses *own, struct sy_error *err)
{
	const int most = sizeof(own->item) / sizeof(own->item[0]);
	struct ifaddrs *list;

	own->count = 0;
	if (getifaddrs(&list) < 0)
		return sy_fail_errno(err, errno, "cannot read this node's addresses");
	for (const struct ifaddrs *one = list; one && own->count < most; one = one->ifa_next)
		own->count += take(one, &own->item[own->count]);
	freeifaddrs(list);
	return 0;
}
