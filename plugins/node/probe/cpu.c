/* CPU of the probe's document. */
#include "probe/probe.h"

#include "base/file.h"
#include "base/number.h"
#include "probe/document_values.h"

#include <stdio.h>
#include <string.h>

#define CPU	 "/sys/devices/system/cpu"
#define MAX_CPUS 8192

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
		    sy_parse_number_list(list, seen, MAX_CPUS) < 1 || !seen[cpu])
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
		cpus = sy_parse_number_list(list, online, MAX_CPUS);
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

/* The value of the first existing key of /proc/cpuinfo, or null: no `noun`. */
static void put_cpuinfo(struct sy_document *document, const char *path, char *text,
			const char *const *keys, const char *noun)
{
	char value[256];
	const char *found = NULL;

	for (size_t i = 0; keys[i] && !found; i++)
		found = sy_probe_find_value(text, keys[i], value, sizeof(value));
	if (found)
		sy_doc_put_text(document, path, found);
	else
		sy_doc_put_null(document, path, "/proc/cpuinfo names no %s", noun);
}

/* Of the first CPU. x86, POWER and IBM Z name the model; ARM gives numbers of implementer and part
 * only. Only x86 names the microcode, which the kernel loads into all CPUs alike. */
static void put_model(int root, struct sy_document *document)
{
	static const char *const model[] = {"model name", "cpu", "cpu model", "uarch", NULL};
	static const char *const vendor[] = {"vendor_id", "CPU implementer", "mvendorid", NULL};
	static const char *const microcode[] = {"microcode", NULL};
	char text[4096];

	if (sy_read_at(root, "/proc/cpuinfo", text, sizeof(text)) < 0)
		text[0] = '\0';
	put_cpuinfo(document, "cpu.model", text, model, "model");
	put_cpuinfo(document, "cpu.vendor", text, vendor, "vendor");
	put_cpuinfo(document, "cpu.microcode", text, microcode, "microcode");
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

/* Turbo, Boost: intel_pstate has a file for off, acpi-cpufreq and amd-pstate for on. */
static void put_boost(int root, struct sy_document *document)
{
	int64_t value;

	if (sy_read_int_at(root, CPU "/intel_pstate/no_turbo", &value) == 0)
		sy_doc_put_text(document, "cpu.boost", value ? "off" : "on");
	else if (sy_read_int_at(root, CPU "/cpufreq/boost", &value) == 0)
		sy_doc_put_text(document, "cpu.boost", value ? "on" : "off");
	else
		sy_doc_put_null(document, "cpu.boost",
				"neither " CPU "/intel_pstate/no_turbo nor %s has a number",
				"cpufreq/boost");
}

/* One value a vulnerability, as the kernel words it: what it does against each of them costs time.
 */
static void put_vulnerabilities(int root, struct sy_document *document)
{
	cleanup_names struct sy_names names = {0};
	int failed = sy_list_at(root, CPU "/vulnerabilities", &names);

	if (failed || !names.count)
		sy_doc_put_null(document, "cpu.vulnerabilities", "%s: %s", CPU "/vulnerabilities",
				failed ? strerror(-failed) : "no file");
	for (size_t i = 0; i < names.count; i++) {
		char path[96], file[128];

		(void)snprintf(path, sizeof(path), "cpu.vulnerabilities.%.48s", names.name[i]);
		(void)snprintf(file, sizeof(file), CPU "/vulnerabilities/%.48s", names.name[i]);
		sy_doc_put_line(document, path, root, file);
	}
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
	put_boost(root, document);
	put_vulnerabilities(root, document);
}
