/* Networks of the specification and the policy: read, written, compared. */
#include "netem/spec/units.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static int address_bits(const struct sy_network *network)
{
	return network->family == AF_INET ? 32 : 128;
}

/* Set the bits after the prefix to 0: whether any was not. */
static bool clear_host_bits(struct sy_network *network)
{
	bool any = false;

	for (int bit = network->prefix; bit < address_bits(network); bit++) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		any |= network->address[bit / 8] & mask;
		network->address[bit / 8] &= (uint8_t)~mask;
	}
	return any;
}

/* ::ffff:a.b.c.d is never on the wire: such packets are IPv4. */
static bool is_mapped(const struct sy_network *network)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return network->family == AF_INET6 && network->prefix >= 96 &&
	       !memcmp(network->address, mapped, sizeof(mapped));
}

int sy_parse_network(const char *text, struct sy_network *network, struct sy_error *err)
{
	size_t length = strcspn(text, "/");
	char address[SY_UNIT_SIZE];
	int64_t prefix;

	memset(network, 0, sizeof(*network));
	(void)snprintf(address, sizeof(address), "%.*s", (int)length, text);
	network->family = memchr(text, ':', length) ? AF_INET6 : AF_INET;
	if (length >= sizeof(address) || inet_pton(network->family, address, network->address) != 1)
		return sy_fail(
		    err, "expected an address or a network, such as 10.0.0.0/8 or 2001:db8::1");
	network->prefix = address_bits(network);
	if (text[length] &&
	    (sy_parse_count(text + length + 1, 0, network->prefix, &prefix, err) < 0 ||
	     (text[length + 1] == '0' && text[length + 2])))
		return sy_fail(err, "expected a prefix length from 0 to %d after the /",
			       network->prefix);
	if (text[length])
		network->prefix = (int)prefix;
	if (is_mapped(network))
		return sy_fail(err, "expected the IPv4 address itself: such packets are IPv4");
	if (clear_host_bits(network))
		return sy_fail(err, "bits after the prefix are set; the network is %s",
			       sy_format_network(network, address));
	return 0;
}

const char *sy_format_network(const struct sy_network *network, char *text)
{
	size_t length;

	if (!inet_ntop(network->family, network->address, text, SY_UNIT_SIZE))
		return strcpy(text, "?");
	length = strlen(text);
	if (network->prefix < address_bits(network))
		(void)snprintf(text + length, SY_UNIT_SIZE - length, "/%d", network->prefix);
	return text;
}

bool sy_network_contains(const struct sy_network *outer, const struct sy_network *inner)
{
	struct sy_network cut = *inner;

	if (outer->family != inner->family || outer->prefix > inner->prefix)
		return false;
	cut.prefix = outer->prefix;
	(void)clear_host_bits(&cut);
	return !memcmp(cut.address, outer->address, sizeof(cut.address));
}
