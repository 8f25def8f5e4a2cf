#include "job/scheduler_addresses.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void add_text(struct sy_addresses *to, const char *text)
{
	for (int i = 0; i < to->count; i++) {
		if (strcmp(to->text[i], text) == 0)
			return;
	}
	if (to->count < SY_PROTECTED_MAX)
		(void)snprintf(to->text[to->count++], SY_ADDRESS_SIZE, "%s", text);
}

void sy_addresses_add_host(struct sy_addresses *to, const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	char text[SY_ADDRESS_SIZE];

	if (!host || !*host || getaddrinfo(host, NULL, &hints, &list) != 0)
		return;
	for (const struct addrinfo *at = list; at; at = at->ai_next) {
		if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) == 0 &&
		    !strchr(text, '%')) /* link-local: no router passes it on */
			add_text(to, text);
	}
	freeaddrinfo(list);
}

static bool is_one_host(const struct sy_network *network)
{
	return network->prefix == (network->family == AF_INET ? 32 : 128);
}

void sy_find_peer(const struct sy_netem *spec, char peer[SY_ADDRESS_SIZE])
{
	if (spec->to_count == 1 && is_one_host(&spec->to[0]))
		(void)inet_ntop(spec->to[0].family, spec->to[0].address, peer, SY_ADDRESS_SIZE);
}

/* True when `network` contains `address` and no other. */
static bool is_exactly(const struct sy_network *network, const char *address)
{
	uint8_t bytes[16];

	if (inet_pton(network->family, address, bytes) != 1)
		return false;
	return is_one_host(network) &&
	       memcmp(bytes, network->address, (size_t)network->prefix / 8) == 0;
}

int sy_refuse_scheduler(const struct sy_netem *spec, const struct sy_addresses *addresses,
			const char *whose, struct sy_error *err)
{
	for (int i = 0; i < spec->to_count; i++) {
		for (int j = 0; j < addresses->count; j++) {
			if (is_exactly(&spec->to[i], addresses->text[j]))
				return sy_fail(err,
					       "to=%s is an address of the scheduler (%s), which "
					       "is never shaped: name another",
					       addresses->text[j], whose);
		}
	}
	return 0;
}
