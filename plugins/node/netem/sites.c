#include "netem/sites.h"

#include "base/file.h"
#include "netem/kernel/table_file.h"
#include "netem/spec/values.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1 << 20)
#define NOT_HERE   (-2) /* that no line is to blame for */
#define LETTERS	   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

struct site {
	const char *name;
	int first, count; /* of its networks */
};

struct table {
	int site_count, network_count, pair_count, here; /* here: -1 until the first link */
	struct site site[SY_SITES_MOST];
	struct sy_network network[SY_SITES_NETWORKS];
	struct {
		int from, to;
	} pair[SY_SITES_PAIRS];
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

static int find_site(const struct table *table, const char *name)
{
	for (int i = 0; i < table->site_count; i++)
		if (!strcmp(table->site[i].name, name))
			return i;
	return -1;
}

static bool overlap(const struct sy_network *a, const struct sy_network *b)
{
	return sy_network_contains(a, b) || sy_network_contains(b, a);
}

/* No packet is for two sites. */
static int add_network(const char *word, struct table *table, struct sy_error *err)
{
	struct sy_network *network = &table->network[table->network_count];

	if (table->network_count == SY_SITES_NETWORKS)
		return sy_fail(err, "expected at most %d networks in all", SY_SITES_NETWORKS);
	if (sy_parse_network(word, network, err) < 0)
		return -1;
	for (int i = 0; i < table->network_count; i++)
		if (overlap(network, &table->network[i]))
			return sy_fail(err,
				       "%s overlaps with a network of a line before, or of "
				       "this one",
				       word);
	table->network_count++;
	return 0;
}

static int read_site(char *line, struct table *table, struct sy_error *err)
{
	struct site *site = &table->site[table->site_count];
	const char *word = next_word(&line);

	if (table->pair_count)
		return sy_fail(err, "expected all sites before the first link");
	if (table->site_count == SY_SITES_MOST)
		return sy_fail(err, "expected at most %d sites", SY_SITES_MOST);
	if (!word || strlen(word) >= SY_TABLE_SIZE || word[strspn(word, LETTERS)])
		return sy_fail(err,
			       "expected 'site NAME NETWORK...', the name of at most %d letters, "
			       "digits, '_' or '-'",
			       SY_TABLE_SIZE - 1);
	if (find_site(table, word) >= 0)
		return sy_fail(err, "site %s: given twice", word);
	*site = (struct site){.name = word, .first = table->network_count};
	while ((word = next_word(&line)))
		if (add_network(word, table, err) < 0)
			return -1;
	site->count = table->network_count - site->first;
	table->site_count++;
	return site->count ? 0 : sy_fail(err, "site %s: expected its networks", site->name);
}

static bool is_in(const struct table *table, const struct site *site,
		  const struct sy_own_addresses *own)
{
	for (int i = site->first; i < site->first + site->count; i++)
		for (int j = 0; j < own->count; j++)
			if (sy_network_contains(&table->network[i], &own->item[j]))
				return true;
	return false;
}

static int find_here(struct table *table, const struct sy_own_addresses *own, struct sy_error *err)
{
	char text[SY_UNIT_SIZE] = "no address";

	for (int i = 0; i < table->site_count; i++) {
		if (!is_in(table, &table->site[i], own))
			continue;
		if (table->here >= 0)
			return sy_fail(err, "this node is in two sites of it, %s and %s",
				       table->site[table->here].name, table->site[i].name);
		table->here = i;
	}
	if (own->count)
		(void)sy_format_network(&own->item[0], text);
	return table->here < 0 ? sy_fail(err, "this node (%s%s) is in no site of it", text,
					 own->count > 1 ? " and more" : "")
			       : 0;
}

/* What a link may say of itself: where it holds the sites say. */
static int check_link(const struct sy_netem *spec, struct sy_error *err)
{
	if (spec->to_count || spec->port_count || *spec->device || spec->direction != SY_EGRESS)
		return sy_fail(err, "the link says where: expected no to, port, dev, direction");
	if (spec->none || spec->has_trace || spec->has_sites)
		return sy_fail(err, "expected no none, trace or sites in a link");
	if (spec->has_rto_min)
		return sy_fail(err, "rto_min stands in the node's routes, which all links share: "
				    "leave it out");
	return 0;
}

static int add_links(const struct table *table, int to, const struct sy_netem *spec,
		     struct sy_sites *sites, struct sy_error *err)
{
	const struct site *site = &table->site[to];

	for (int done = 0; done < site->count; done += SY_NETEM_TARGETS) {
		struct sy_sites_link *link = &sites->link[sites->count];
		int left = site->count - done;

		if (sites->count == SY_SITES_LINKS)
			return sy_fail(err,
				       "%d conditions begin at %s, which is as many as a device "
				       "has: put addresses together to networks",
				       (int)SY_SITES_LINKS, sites->here);
		(void)snprintf(link->to, sizeof(link->to), "%s", site->name);
		link->spec = *spec;
		link->spec.to_count = left < SY_NETEM_TARGETS ? left : SY_NETEM_TARGETS;
		memcpy(link->spec.to, &table->network[site->first + done],
		       (size_t)link->spec.to_count * sizeof(*link->spec.to));
		sites->count++;
	}
	return 0;
}

static int add_pair(const struct table *table, int from, int to, struct sy_error *err)
{
	for (int i = 0; i < table->pair_count; i++)
		if (table->pair[i].from == from && table->pair[i].to == to)
			return sy_fail(err, "the link from %s to %s: given twice",
				       table->site[from].name, table->site[to].name);
	return table->pair_count == SY_SITES_PAIRS
		   ? sy_fail(err, "expected at most %d links", SY_SITES_PAIRS)
		   : 0;
}

static int read_link(char *line, struct table *table, struct sy_sites *sites, struct sy_error *err)
{
	const char *from = next_word(&line), *to = next_word(&line), *text = next_word(&line);
	int begins = from ? find_site(table, from) : -1, ends = to ? find_site(table, to) : -1;
	struct sy_netem spec;

	if (begins < 0 || ends < 0 || !text || next_word(&line))
		return sy_fail(err, "expected 'link FROM TO SPEC', both among the sites before");
	if (add_pair(table, begins, ends, err) < 0 || sy_netem_parse(text, &spec, err) < 0 ||
	    check_link(&spec, err) < 0)
		return -1;
	table->pair[table->pair_count].from = begins;
	table->pair[table->pair_count++].to = ends;
	return begins == table->here ? add_links(table, ends, &spec, sites, err) : 0;
}

static int read_line(char *line, struct table *table, const struct sy_own_addresses *own,
		     struct sy_sites *sites, struct sy_error *err)
{
	const char *word = next_word(&line);

	if (!word || *word == '#')
		return 0;
	if (!strcmp(word, "site"))
		return read_site(line, table, err);
	if (strcmp(word, "link") != 0)
		return sy_fail(err, "expected a line of 'site' or 'link', or a comment");
	if (!table->pair_count) {
		if (find_here(table, own, err) < 0)
			return NOT_HERE;
		strcpy(sites->here, table->site[table->here].name);
	}
	return read_link(line, table, sites, err);
}

static int parse(char *text, const struct sy_own_addresses *own, struct sy_sites *sites,
		 int *number, struct sy_error *err)
{
	cleanup_free struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return sy_fail(err, "out of memory");
	table->here = -1;
	for (char *line; (line = strsep(&text, "\n"));) {
		int result;

		++*number;
		line[strcspn(line, "\r")] = '\0';
		result = read_line(line, table, own, sites, err);
		if (result < 0)
			return result;
	}
	return table->pair_count ? 0 : sy_fail(err, "expected sites and at least one link");
}

int sy_sites_read(const char *folder, const char *name, const struct sy_own_addresses *own,
		  struct sy_sites *sites, struct sy_error *err)
{
	cleanup_free char *text = malloc(MOST_BYTES);
	cleanup_close int fd = -1;
	struct sy_error why = {{0}};
	char path[PATH_MAX];
	ssize_t length;
	int number = 0;

	*sites = (struct sy_sites){.count = 0};
	if (!text)
		return sy_fail(err, "out of memory");
	(void)snprintf(path, sizeof(path), "%s/%s.sites", folder, name);
	fd = sy_table_file_open(path, "sites", ": steelyard netem sites FILE --write", MOST_BYTES,
				err);
	if (fd < 0)
		return -1;
	length = sy_read_fd(fd, text, MOST_BYTES);
	if (length < 0)
		return sy_fail(err, "sites %s: cannot be read", path);
	(void)sy_sha256(text, (size_t)length, sites->sha256);
	switch (parse(text, own, sites, &number, &why)) {
	case 0:
		return 0;
	case NOT_HERE:
		return sy_fail(err, "sites %s: %s", path, why.text);
	default:
		return sy_fail(err, "sites %s, line %d: %s", path, number, why.text);
	}
}

int sy_sites_allowed(const struct sy_sites *sites, const struct sy_policy *policy,
		     struct sy_error *err)
{
	struct sy_error why = {{0}};

	for (int i = 0; policy && i < sites->count; i++)
		if (sy_policy_allows_link(policy, &sites->link[i].spec, &why) < 0)
			return sy_fail(err, "from %s to %s: %s", sites->here, sites->link[i].to,
				       why.text);
	return 0;
}
