#include "netem/sites_file.h"

#include "base/file.h"
#include "netem/kernel/delay_tables.h"
#include "netem/spec/values.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MOST_BYTES (1 << 20)
#define LETTERS	   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* An address of a device as a network of one; false: it is of no use to others. */
static bool read_address(const struct ifaddrs *one, struct sy_network *network)
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
		own->count += read_address(one, &own->item[own->count]);
	freeifaddrs(list);
	return 0;
}

struct reader {
	const struct sy_own_addresses *own;
	struct sy_sites *sites;
	bool has_site, has_link;
	bool is_own_site; /* the site of these lines is this node's */
};

/* The next word of a line; NULL: there is none. */
static char *next_word(char **line)
{
	char *word = *line ? *line + strspn(*line, " ") : NULL;

	if (!word || !*word)
		return NULL;
	*line = sy_cut(word, ' ');
	return word;
}

static bool is_own(const struct sy_own_addresses *own, const struct sy_network *network)
{
	for (int i = 0; i < own->count; i++)
		if (sy_network_contains(network, &own->item[i]))
			return true;
	return false;
}

static bool is_name(const char *word)
{
	return word && strlen(word) < SY_TABLE_SIZE && !word[strspn(word, LETTERS)];
}

static int read_site(char *line, struct reader *reader, struct sy_error *err)
{
	const char *name = next_word(&line), *word = next_word(&line);
	struct sy_network network;
	bool is_own_site = false;

	if (!is_name(name) || !word)
		return sy_fail(err,
			       "expected 'site NAME NETWORK...', the name of at most %d letters, "
			       "digits, '_' or '-'",
			       SY_TABLE_SIZE - 1);
	for (; word; word = next_word(&line)) {
		if (sy_parse_network(word, &network, err) < 0)
			return -1;
		is_own_site |= is_own(reader->own, &network);
	}
	if (is_own_site && *reader->sites->own_site)
		return sy_fail(err, "this node is in two sites of it, %s and %s",
			       reader->sites->own_site, name);
	if (is_own_site)
		strcpy(reader->sites->own_site, name);
	reader->has_site = true;
	reader->is_own_site = is_own_site;
	return 0;
}

/* All conditions of a node hold at the same time: no packet is for two of them. */
static int check_condition(const struct sy_netem *spec, struct sy_error *err)
{
	if (!spec->to_count)
		return sy_fail(err, "expected to=NETWORK, the other site's");
	if (spec->port_count || *spec->device || spec->direction != SY_EGRESS)
		return sy_fail(err, "expected no port, dev, direction");
	if (spec->none || spec->has_trace || spec->has_sites)
		return sy_fail(err, "expected no none, trace or sites");
	if (spec->has_rto_min)
		return sy_fail(err, "rto_min stands in the node's routes, which all conditions "
				    "share: leave it out");
	return 0;
}

static int add_link(const char *to, const struct sy_netem *spec, struct sy_sites *sites,
		    struct sy_error *err)
{
	struct sy_sites_link *link = &sites->link[sites->count];

	for (int i = 0; i < sites->count; i++)
		if (sy_plan_overlap(&sites->link[i].spec, spec))
			return sy_fail(err, "packets to %s are for another condition of %s too", to,
				       sites->own_site);
	if (sites->count == SY_SITES_LINKS)
		return sy_fail(err,
			       "more than the %d conditions that a device has begin at %s: put "
			       "addresses together to networks",
			       (int)SY_SITES_LINKS, sites->own_site);
	(void)snprintf(link->to, sizeof(link->to), "%s", to);
	link->spec = *spec;
	sites->count++;
	return 0;
}

static int read_condition(char *line, struct reader *reader, struct sy_error *err)
{
	const char *to = next_word(&line), *text = next_word(&line);
	struct sy_netem spec;

	if (!reader->has_site)
		return sy_fail(err, "expected a line of 'site' before it");
	if (!is_name(to) || !text || next_word(&line))
		return sy_fail(err, "expected 'to NAME SPEC'");
	if (sy_netem_parse(text, &spec, err) < 0 || check_condition(&spec, err) < 0)
		return -1;
	reader->has_link = true;
	return reader->is_own_site ? add_link(to, &spec, reader->sites, err) : 0;
}

static int read_line(char *line, struct reader *reader, struct sy_error *err)
{
	const char *word = next_word(&line);

	if (!word || *word == '#')
		return 0;
	if (!strcmp(word, "site"))
		return read_site(line, reader, err);
	if (!strcmp(word, "to"))
		return read_condition(line, reader, err);
	return sy_fail(err, "expected a line of 'site' or 'to', or a comment");
}

/* `number`: of the line that is wrong; 0: none is to blame. */
static int parse_lines(char *text, struct reader *reader, int *number, struct sy_error *err)
{
	const struct sy_own_addresses *own = reader->own;
	char first[SY_UNIT_SIZE] = "no address";

	for (char *line; (line = strsep(&text, "\n"));) {
		++*number;
		line[strcspn(line, "\r")] = '\0';
		if (read_line(line, reader, err) < 0)
			return -1;
	}
	*number = 0;
	if (!reader->has_link)
		return sy_fail(err, "expected sites and at least one line of 'to'");
	if (*reader->sites->own_site)
		return 0;
	if (own->count)
		(void)sy_format_network(&own->item[0], first);
	return sy_fail(err, "this node (%s%s) is in no site of it", first,
		       own->count > 1 ? " and more" : "");
}

int sy_sites_read(const char *folder, const char *name, const struct sy_own_addresses *own,
		  struct sy_sites *sites, struct sy_error *err)
{
	cleanup_free char *text = NULL;
	struct sy_error reason = {{0}};
	struct reader reader = {.own = own, .sites = sites};
	char path[PATH_MAX];
	size_t length;
	int number = 0;

	*sites = (struct sy_sites){.count = 0};
	(void)snprintf(path, sizeof(path), "%s/%s.sites", folder, name);
	text = sy_table_read(path, "sites", ": steelyard netem sites FILE --write", MOST_BYTES,
			     &length, err);
	if (!text)
		return -1;
	(void)sy_sha256(text, length, sites->sha256);
	if (parse_lines(text, &reader, &number, &reason) == 0)
		return 0;
	return number ? sy_fail(err, "sites %s, line %d: %s", path, number, reason.text)
		      : sy_fail(err, "sites %s: %s", path, reason.text);
}

int sy_sites_check_policy(const struct sy_sites *sites, const struct sy_policy *policy,
			  struct sy_error *err)
{
	struct sy_error reason = {{0}};

	for (int i = 0; policy && i < sites->count; i++)
		if (sy_policy_allows_link(policy, &sites->link[i].spec, &reason) < 0)
			return sy_fail(err, "from %s to %s: %s", sites->own_site, sites->link[i].to,
				       reason.text);
	return 0;
}
