/* /proc/PID/cgroup: which group is the job's, and the ways out of it, which lead nowhere else than
 * below /sys/fs/cgroup. */
#include "fuzz.h"

#include "../../plugins/slurm/job_cgroup.c"
#include "job/spawn.h"

static void must_lead_out(const char *text, sy_egress_rule rule)
{
	static struct sy_egress way;

	memset(&way, 0, sizeof(way));
	sy_egress_read(&way, text, rule);
	must(way.count <= SY_EGRESS_MAX);
	for (size_t i = 0; i < way.count; i++) {
		size_t length = strnlen(way.paths[i], sizeof(way.paths[i]));

		must(length < sizeof(way.paths[i]));
		must(strncmp(way.paths[i], "/sys/fs/cgroup/", 15) == 0);
		must(length > 13 && !strcmp(way.paths[i] + length - 13, "/cgroup.procs"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);
	size_t length = 0;
	const char *found = sy_job_cgroup_find(text, 4711, &length);

	if (found) {
		must(found >= text && length > 0 && found + length <= text + strlen(text));
		must(*found == '/' && !memchr(found, '\n', length));
	}
	must_lead_out(text, sy_egress_from_slurm);
	must_lead_out(text, sy_egress_to_top);
	free(text);
	return 0;
}
