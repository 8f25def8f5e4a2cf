/* CPU and memory of the probe's document. */
#include "probe/probe.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define CPU	 "/sys/devices/system/cpu"
#define MAX_CPUS 8192

int sy_parse_cpu_list(const char *text, bool *marks, int size)
{
	int count = 0;

	while (*text && *text != '\n') {
		char *end;
		long first = strtol(text, &end, 10), last = first;

		if (end == text || first < 0)
			return -1;
		if (*end == '-') {
			text = end + 1;
			last = strtol(text, &end, 10);
		}
		if (end == text || last < first || last > 1 << 20 || !strchr(",\n", *end))
			return -1;
		for (long cpu = first; cpu <= last; cpu++, count++)
			if (cpu < size)
				marks[cpu] = true;
		text = *end == ',' ? end + 1 : end;
	}
	return count;
}

/* How many groups the online CPUs form by a topology file that lists a group's members: one read a
 * group. -1 when it cannot be read. */
static int count_groups(int root, const bool *online, const char *file)
{
	static _Thread_local bool seen[MAX_CPUS];
	int groups = 0;

	memset(seen, 0, sizeof(seen));
	for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
		char path[128], list[4096];

		if (!online[cpu] || seen[cpu])
			continue;
		(void)snprintf(path, sizeof(path), CPU "/cpu%d/topology/%s", cpu, file);
		if (sy_read_line_at(root, path, list, sizeof(list)) <= 0 ||
		    sy_parse_cpu_list(list, seen, MAX_CPUS) < 1 || !seen[cpu])
			return -1;
		groups++;
	}
	return groups;
}

static void put_groups(struct sy_document *document, const char *path, int groups, const char *file)
{
	if (groups > 0)
		sy_doc_put_int(document, path, groups);
	else
		sy_doc_put_null(document, path, CPU "/cpu*/topology/%s cannot be read", file);
}

static void put_topology(int root, struct sy_document *document)
{
	static _Thread_local bool online[MAX_CPUS];
	char list[8192];
	int cpus = -1, cores, sockets;

	memset(online, 0, sizeof(online));
	if (sy_read_line_at(root, CPU "/online", list, sizeof(list)) > 0)
		cpus = sy_parse_cpu_list(list, online, MAX_CPUS);
	if (cpus > 0)
		sy_doc_put_int(document, "cpu.cpus_online", cpus);
	else
		sy_doc_put_null(document, "cpu.cpus_online", CPU "/online cannot be read");
	cores = cpus > 0 ? count_groups(root, online, "thread_siblings_list") : -1;
	sockets = cpus > 0 ? count_groups(root, online, "core_siblings_list") : -1;
	put_groups(document, "cpu.sockets", sockets, "core_siblings_list");
	put_groups(document, "cpu.cores", cores, "thread_siblings_list");
	if (cores > 0 && cpus % cores == 0)
		sy_doc_put_int(document, "cpu.threads_per_core", cpus / cores);
	else if (cores > 0)
		sy_doc_put_null(document, "cpu.threads_per_core", "%d CPUs on %d cores: it differs",
				cpus, cores);
	else
		sy_doc_put_null(document, "cpu.threads_per_core",
				"the number of cores is not known");
}

/* The value of the first line that begins with `key`, white space, ":"; or NULL. */
static char *find_value(char *text, const char *key, char *buffer, size_t size)
{
	size_t length = strlen(key);

	for (char *line = text; line; line = strchr(line, '\n')) {
		const char *colon;

		line += *line == '\n';
		colon = line + length + strspn(*line ? line + length : "", " \t");
		if (strncmp(line, key, length) != 0 || *colon != ':')
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		(void)snprintf(buffer, size, "%.*s", (int)strcspn(colon, "\n"), colon);
		return *buffer ? buffer : NULL;
	}
	return NULL;
}

/* x86, POWER and IBM Z name the model; ARM gives numbers of implementer and part only. */
static void put_model(int root, struct sy_document *document)
{
	static const char *const model_keys[] = {"model name", "cpu", "cpu model", "uarch"};
	static const char *const vendor_keys[] = {"vendor_id", "CPU implementer", "mvendorid"};
	char text[4096], value[256];
	const char *model = NULL, *vendor = NULL;

	if (sy_read_at(root, "/proc/cpuinfo", text, sizeof(text)) < 0)
		text[0] = '\0';
	for (size_t i = 0; i < 4 && !model; i++)
		model = find_value(text, model_keys[i], value, sizeof(value));
	if (model)
		sy_doc_put_text(document, "cpu.model", model);
	else
		sy_doc_put_null(document, "cpu.model", "/proc/cpuinfo names no model");
	for (size_t i = 0; i < 3 && !vendor; i++)
		vendor = find_value(text, vendor_keys[i], value, sizeof(value));
	if (vendor)
		sy_doc_put_text(document, "cpu.vendor", vendor);
	else
		sy_doc_put_null(document, "cpu.vendor", "/proc/cpuinfo names no vendor");
}

/* One governor a policy; "mixed" where they differ. */
static void put_governor(int root, struct sy_document *document)
{
	cleanup_names struct sy_names names = {0};
	char governor[64] = "", one[64], path[128];

	(void)sy_list_at(root, CPU "/cpufreq", &names);
	for (size_t i = 0; i < names.count; i++) {
		if (strncmp(names.name[i], "policy", 6) != 0)
			continue;
		(void)snprintf(path, sizeof(path), CPU "/cpufreq/%.32s/scaling_governor",
			       names.name[i]);
		if (sy_read_line_at(root, path, one, sizeof(one)) <= 0)
			continue;
		if (*governor && strcmp(governor, one) != 0)
			(void)strcpy(governor, "mixed");
		else
			memcpy(governor, one, sizeof(governor));
		if (!strcmp(governor, "mixed"))
			break;
	}
	if (*governor)
		sy_doc_put_text(document, "cpu.governor", governor);
	else
		sy_doc_put_null(document, "cpu.governor",
				"no frequency scaling: %s is empty or absent", CPU "/cpufreq");
}

void sy_probe_cpu(int root, struct sy_document *document)
{
	static const char max_file[] = CPU "/cpu0/cpufreq/cpuinfo_max_freq";
	int64_t max_khz;

	put_model(root, document);
	put_topology(root, document);
	if (sy_read_int_at(root, max_file, &max_khz) == 0 && max_khz > 0)
		sy_doc_put_int(document, "cpu.max_hz", max_khz * 1000);
	else
		sy_doc_put_null(document, "cpu.max_hz", "%s cannot be read", max_file);
	put_governor(root, document);
	sy_doc_put_line(document, "cpu.smt", root, CPU "/smt/control");
}

/* A line of /proc/meminfo, in its own unit: -1 when it is not there. */
static int64_t meminfo(char *text, const char *key)
{
	char value[64], *end;
	long long number;

	if (!find_value(text, key, value, sizeof(value)))
		return -1;
	number = strtoll(value, &end, 10);
	return end == value || number < 0 ? -1 : number;
}

static void put_kb(struct sy_document *document, const char *path, const char *key, int64_t kb)
{
	if (kb >= 0)
		sy_doc_put_int(document, path, kb * 1024);
	else
		sy_doc_put_null(document, path, "/proc/meminfo has no %s", key);
}

void sy_probe_memory(int root, struct sy_document *document)
{
	char text[8192];
	int64_t huge_kb;

	if (sy_read_at(root, "/proc/meminfo", text, sizeof(text)) < 0)
		text[0] = '\0';
	put_kb(document, "memory.memory_bytes", "MemTotal", meminfo(text, "MemTotal"));
	put_kb(document, "memory.swap_bytes", "SwapTotal", meminfo(text, "SwapTotal"));
	/* Hugetlb, since Linux 4.16, sums all page sizes. */
	huge_kb = meminfo(text, "Hugetlb");
	if (huge_kb < 0 && meminfo(text, "HugePages_Total") >= 0 &&
	    meminfo(text, "Hugepagesize") >= 0)
		huge_kb = meminfo(text, "HugePages_Total") * meminfo(text, "Hugepagesize");
	put_kb(document, "memory.huge_pages_bytes", "Hugetlb", huge_kb);
}
