#include "doctor/sites.h"

#include "netem/sites.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#define NAME "netem sites"
#define SUM  12 /* digits of a file's sum: enough to tell two apart */

/* One file, as a job here would have it; it is the same on all nodes, and so is what is said. */
static int look(const char *path, char *told, size_t size, struct sy_error *err)
{
	const char *file = strrchr(path, '/') + 1;
	size_t used = strlen(told);
	struct sy_own_addresses own;
	struct sy_sites sites;
	char name[256];

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
	if (sy_own_addresses_read(&own, err) < 0 ||
	    sy_sites_read(SY_SITES, name, &own, &sites, err) < 0)
		return -1;
	(void)snprintf(told + used, size - used, "%s%s (sha256 %.*s)", used ? ", " : "", name, SUM,
		       sites.sha256);
	return 0;
}

void sy_doctor_sites(struct sy_doctor *doctor)
{
	struct sy_error err = {""};
	char told[1024] = "";
	glob_t found = {0};
	int good = 0;

	if (!doctor->is_machine || glob(SY_SITES "/*.sites", 0, NULL, &found) != 0)
		return globfree(&found);
	for (size_t i = 0; i < found.gl_pathc && good == 0; i++)
		good = look(found.gl_pathv[i], told, sizeof(told), &err);
	if (good < 0)
		sy_doctor_say(doctor, NAME, SY_WARNING,
			      "jobs that ask for it are refused here: docs/netem.md", "%s",
			      err.text);
	else
		sy_doctor_say(doctor, NAME, SY_OK, "", "this node is in a site of %s", told);
	globfree(&found);
}
