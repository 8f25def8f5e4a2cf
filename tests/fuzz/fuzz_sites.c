/* A file of sites: the first line is the node's address. No packet is for two of its links, and
 * each link is a specification that can be said again. */
#include "fuzz.h"

#include "netem/sites_file.h"
#include "netem/spec/spec.h"
#include "netem/spec/values.h"

static void check(const struct sy_sites *sites)
{
	char text[SY_NETEM_SIZE];
	struct sy_netem again;
	struct sy_error err;

	must(*sites->own_site && sites->count >= 0 && sites->count <= (int)SY_SITES_LINKS);
	for (int i = 0; i < sites->count; i++) {
		const struct sy_netem *spec = &sites->link[i].spec;

		must(spec->to_count && !spec->has_rto_min && !spec->has_trace && !spec->none);
		(void)sy_netem_format(spec, text);
		must(sy_netem_parse(text, &again, &err) == 0);
		must(memcmp(spec, &again, sizeof(again)) == 0);
		for (int j = 0; j < i; j++)
			must(!sy_plan_overlap(spec, &sites->link[j].spec));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char folder[] = "/tmp/steelyard-fuzz-XXXXXX", path[64];
	struct sy_own_addresses own = {.count = 1};
	char *text = text_of(data, size), *file = first_line(text);
	struct sy_sites sites;
	struct sy_error err = {0};
	FILE *out;

	if (!*path) {
		must(mkdtemp(folder));
		(void)snprintf(path, sizeof(path), "%s/x.sites", folder);
	}
	if (sy_parse_network(text, &own.item[0], &err) == 0 && (out = fopen(path, "w"))) {
		must(fputs(file, out) != EOF && fclose(out) == 0 && chmod(path, 0600) == 0);
		if (sy_sites_read(folder, "x", &own, &sites, &err) == 0)
			check(&sites);
		else
			must_say_why(&err);
		(void)unlink(path);
	}
	free(text);
	return 0;
}
