/* Counter files of the kernel: every number that is taken is not negative, and strtoll's. */
#include "fuzz.h"

#include <errno.h>

#include "base/number.h"
#include "counters/parse.h"
#include "probe/probe.h"

static void read_number(const char *text)
{
	int64_t value = -1;
	long long other;

	if (sy_parse_number(text, &value) < 0)
		return;
	errno = 0;
	other = strtoll(text, NULL, 10);
	must(errno == 0 && value == other && value >= 0);
}

static void read_stat(const char *text)
{
	const char *name = strrchr(text, ')');
	struct sy_stat stat;
	long long ppid = 0, cutime = 0, cstime = 0;

	if (sy_parse_stat(text, &stat) < 0)
		return;
	must(name && stat.state == name[2]);
	must(sscanf(name + 3, "%lld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lld %lld", &ppid,
		    &cutime, &cstime) == 3);
	must((pid_t)ppid == stat.ppid && cutime == stat.cutime && cstime == stat.cstime);
}

/* In a cgroup is also in every one above it. */
static void read_cgroup(const char *text)
{
	static const char *const controllers[] = {NULL, "", "cpuacct"};

	for (size_t i = 0; i < 3; i++)
		if (sy_parse_in_cgroup(text, "/slurm/uid_0/job_1", controllers[i]) == 0)
			must(sy_parse_in_cgroup(text, "/slurm", controllers[i]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);
	int64_t a = 0, b = 0, c = 0, d = 0, e = 0;
	int64_t io[4] = {0};
	static bool marks[64];
	int cpus;

	read_number(text);
	read_stat(text);
	read_cgroup(text);
	(void)sy_parse_keyed(text, "usage_usec", &a);
	(void)sy_parse_pressure(text, &b);
	(void)sy_parse_snmp(text, &c, &d);
	(void)sy_parse_io(text, io);
	(void)sy_parse_loadavg(text, &e);
	must(a >= 0 && b >= 0 && c >= 0 && d >= 0 && e >= 0);
	must(io[0] >= 0 && io[1] >= 0 && io[2] >= 0 && io[3] >= 0);
	cpus = size < 32 ? sy_parse_number_list(text, marks, 64) : 0;
	must(cpus >= -1);
	free(text);
	return 0;
}
