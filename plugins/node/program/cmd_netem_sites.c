/* steelyard-node netem sites: the links of a file of sites for this node. */
#include "netem/kernel/delay_tables.h"
#include "netem/policy/policy.h"
#include "netem/sites_file.h"
#include "netem/spec/spec.h"
#include "program/commands.h"
#include "program/options.h"

#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "usage: steelyard-node netem sites NAME [--folder DIR] [--policy FILE]\n"
    "\n"
    "Reads DIR/NAME.sites (default: " SY_TABLES
    ") as --netem=sites=NAME does, and prints at which\n"
    "site this node is and the links that begin there, as one JSON object. Exit code 4: the file\n"
    "is not there or not as expected, the node is in no site of it, or the policy refuses a link.\n"
    "\n"
    "  --folder DIR   where the file lies\n"
    "  --policy FILE  ask this policy, too; root's, or your own\n";

static int complain(const struct sy_error *err)
{
	(void)fprintf(stderr, "steelyard-node netem sites: %s\n", err->text);
	return SY_EXIT_CONDITION;
}

static json_t *describe(const char *name, const struct sy_sites *sites)
{
	json_t *links = json_array();
	char text[SY_NETEM_SIZE];

	for (int i = 0; i < sites->count; i++) {
		(void)sy_netem_format(&sites->link[i].spec, text);
		(void)json_array_append_new(links, json_pack("{s:s, s:s}", "to_site",
							     sites->link[i].to, "requested", text));
	}
	return json_pack("{s:s, s:s, s:s, s:o}", "name", name, "sha256", sites->sha256, "here",
			 sites->own_site, "links", links);
}

static int read_file(const char *name, const char *folder, const char *policy_path)
{
	struct sy_policy *policy = NULL;
	struct sy_own_addresses own;
	struct sy_error err = {{0}};
	struct sy_sites sites;
	struct sy_netem spec;
	char text[SY_NETEM_SIZE];
	int result;

	(void)snprintf(text, sizeof(text), "sites=%s", name);
	if (sy_netem_parse(text, &spec, &err) < 0)
		return complain(&err), SY_EXIT_USAGE;
	if (policy_path && !(policy = sy_policy_read(policy_path, false, &err)))
		return complain(&err);
	result = sy_own_addresses_read(&own, &err);
	if (result == 0)
		result = sy_sites_read(folder, spec.sites, &own, &sites, &err);
	if (result == 0)
		result = sy_sites_check_policy(&sites, policy, &err);
	sy_policy_free(policy);
	return result < 0 ? complain(&err)
			  : sy_command_print("netem sites", describe(spec.sites, &sites));
}

int sy_netem_sites_command(int argc, char **argv)
{
	static const struct option table[] = {{"folder", required_argument, NULL, 'f'},
					      {"policy", required_argument, NULL, 'p'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	const char *folder = SY_TABLES, *policy = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		if (option == 'f')
			folder = optarg;
		else if (option == 'p')
			policy = optarg;
		else
			return option == 'h' ? sy_command_help(help) : sy_command_usage(help);
	}
	if (optind == argc - 1)
		return read_file(argv[optind], folder, policy);
	return sy_command_usage(help);
}
