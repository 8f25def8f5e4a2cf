/* The end of a record: the totals of the samples, and what else is known at the job's end. */
#include "record/record.h"

#include "base/json_document.h"

#include <stdio.h>
#include <string.h>

/* A reason from the job's start is more precise than the absence of a value in the samples. */
static void put_total(json_t *record, const char *path, json_t *value)
{
	const char *known = sy_json_reason(record, path);
	char reason[256];

	(void)snprintf(reason, sizeof(reason), "%s",
		       known && strcmp(known, SY_NOT_YET) != 0 ? known : SY_NO_VALUE);
	sy_json_put(record, path, value, reason);
}

void sy_record_totals(json_t *record, const struct sy_sums *sums)
{
	const int64_t *last = sums->last.cell;
	json_t *zones = json_object_get(json_object_get(record, "energy"), "zones");
	json_t *devices = json_object_get(json_object_get(record, "network"), "devices");
	char path[64];

	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		int64_t value = sy_sums_total(sums, (enum sy_total)i);

		if (fact->cell != SY_NO_CELL)
			put_total(
			    record, fact->path,
			    (sy_is_micro(fact->unit) ? sy_micro_or_null : sy_count_or_null)(value));
	}
	if (sums->samples)
		sy_json_put(record, "start_unix_s", sy_micro_or_null(sums->first_unix), NULL);
	put_total(record, "end_unix_s", sy_micro_or_null(last[SY_UNIX]));
	sy_json_put(record, "sampler.samples", json_integer(sums->samples), NULL);
	for (size_t i = 0; i < json_array_size(zones) && i < SY_MAX_ZONES; i++) {
		(void)snprintf(path, sizeof(path), "energy.zones.%zu.energy_j", i);
		put_total(record, path, sy_micro_or_null(last[SY_ZONE + i]));
	}
	sy_record_gpu_energy(record);
	for (size_t i = 0; i < json_array_size(devices) && i < SY_MAX_DEVICES; i++) {
		(void)snprintf(path, sizeof(path), "network.devices.%zu.rx_bytes", i);
		put_total(record, path, sy_count_or_null(last[SY_RX_DEVICE + i]));
		(void)snprintf(path, sizeof(path), "network.devices.%zu.tx_bytes", i);
		put_total(record, path, sy_count_or_null(last[SY_TX_DEVICE + i]));
	}
}

static json_t *source(enum sy_source name)
{
	const char *text = sy_source_name(name);

	return text ? json_string(text) : json_null();
}

/* The largest of what the job's processes had at each sample. */
static bool is_of_moments(enum sy_total which)
{
	const struct sy_total_fact *fact = &sy_total_facts[which];

	return fact->over_time == SY_OVER_LARGEST && fact->whose == SY_OF_PROCESSES;
}

/* Without a sampled process a maximum of 0 would be wrong: the job ran no task, or its tasks ran
 * between samples. */
static void put_sampled(json_t *record, const struct sy_status *status, const char *reason)
{
	if (status->unread_tasks)
		reason = "the job had more tasks at once than the kernel reads: bpf.unread_tasks";
	else if (status->io_source == SY_SOURCE_BPF &&
		 sy_sums_total(&status->sums, SY_MOST_PROCESSES) != SY_UNKNOWN)
		reason = "the job's processes ran no program of their own: their memory is that of "
			 "the process which forked them";
	else if (!status->nothing_named)
		reason =
		    "no process of the job was there at any sample: it ran none, or none that long";
	for (int i = 0; i < SY_TOTALS; i++)
		if (is_of_moments((enum sy_total)i))
			sy_json_explain(record, sy_total_facts[i].path, reason);
	sy_json_put(record, "memory.source",
		    sy_sums_total(&status->sums, SY_MAX_MEMORY_BYTES) != SY_UNKNOWN
			? source(status->memory_source)
			: json_null(),
		    reason);
	sy_json_put(record, "memory.charged_peak_bytes",
		    sy_count_or_null(status->charged_peak_bytes),
		    "no cgroup of the job has counted the peak of its memory");
}

/* How much there is at least, where that is known. */
static void explain_io(json_t *record, const struct sy_status *status, const char *reason)
{
	for (int i = SY_RCHAR_BYTES; i <= SY_WRITE_BYTES; i++) {
		int64_t least = status->io_least[SY_USE_RCHAR + i - SY_RCHAR_BYTES];
		char text[160];

		(void)snprintf(text, sizeof(text), "%s; at least %lld", reason, (long long)least);
		sy_json_explain(record, sy_total_facts[i].path,
				status->io_unreported ? text : reason);
	}
}

static void put_unseen(json_t *record, const struct sy_status *status)
{
	bool counted = status->io_source == SY_SOURCE_BPF; /* all of them */

	sy_json_put(record, "cpu.unseen_s",
		    counted ? sy_micro_or_null(0) : sy_micro_or_null(status->gap_us),
		    "no cgroup counts the job's CPU to its end: what no step has waited for is "
		    "not known");
}

static const char *missing_bpf_reason(const struct sy_status *status)
{
	return status->nothing_named   ? "no process of the job was named to the sampler"
	       : status->bpf_reason[0] ? status->bpf_reason
				       : "the sampler has not asked the kernel";
}

static void put_faults(json_t *record, int64_t minor, int64_t major, const char *reason)
{
	sy_json_put(record, sy_total_facts[SY_MINOR_FAULTS].path, sy_count_or_null(minor), reason);
	sy_json_put(record, sy_total_facts[SY_MAJOR_FAULTS].path, sy_count_or_null(major), reason);
}

static void put_job_sources(json_t *record, const struct sy_status *status)
{
	const char *reason = "no process of the job was named to the sampler";
	bool cpu = status->sums.last.cell[SY_CPU] != SY_UNKNOWN;
	bool io = status->sums.last.cell[SY_RCHAR] != SY_UNKNOWN;
	bool inseparable = !io && status->io_inseparable;

	sy_json_put(record, "processes.named", json_boolean(!status->nothing_named), NULL);
	sy_json_put(record, "cpu.source", cpu ? source(status->cpu_source) : json_null(), reason);
	put_sampled(record, status, reason);
	put_unseen(record, status);
	put_faults(record, status->minor_faults, status->major_faults, missing_bpf_reason(status));
	if (status->io_unreadable)
		reason = "/proc/PID/io of a process of the job may not be read";
	else if (status->io_unreported)
		reason = "the job's cgroup has counted CPU that no step reported (cpu.unseen_s)";
	else if (inseparable)
		reason = "a slurmstepd could not separate its tasks' bytes from its own";
	sy_json_put(record, "io.source", io ? source(status->io_source) : json_null(), reason);
	if (status->nothing_named || status->io_unreadable || status->io_unreported || inseparable)
		explain_io(record, status, reason);
	if (!status->nothing_named)
		return;
	sy_json_explain(record, "cpu.cpu_s", reason);
}

static bool has_pressure(const struct sy_status *status)
{
	return status->sums.last.cell[SY_PRESSURE_CPU] != SY_UNKNOWN ||
	       status->sums.last.cell[SY_PRESSURE_IO] != SY_UNKNOWN;
}

void sy_record_status(json_t *record, const struct sy_status *status)
{
	sy_json_put(record, "cpu.user_s", sy_micro_or_null(status->user_us),
		    "reported only by cgroups, and for a command that the sampler started");
	sy_json_put(record, "cpu.system_s", sy_micro_or_null(status->system_us),
		    "reported only by cgroups, and for a command that the sampler started");
	put_job_sources(record, status);
	sy_json_put(record, "cpu.node_steal_s",
		    status->finished ? sy_micro_or_null(status->stolen_us) : json_null(),
		    "/proc/stat was not read at the job's end, or reports no steal");
	sy_json_put(record, "pressure.scope",
		    has_pressure(status) ? json_string(status->pressure_of_job ? "job" : "node")
					 : json_null(),
		    "the kernel gives no pressure (PSI) here");
	for (int i = SY_PRESSURE_CPU_S; i <= SY_PRESSURE_MEMORY_S; i++)
		sy_json_explain(record, sy_total_facts[i].path,
				"the kernel gives no pressure (PSI) here");
	sy_json_explain(record, sy_total_facts[SY_NODE_CPU_S].path,
			"read only where an energy counter of packages and dram can be shared out");
	sy_json_put(record, "clock.steps",
		    status->sums.samples ? json_integer(status->clock_steps) : json_null(),
		    "no sample was taken");
	sy_json_put(record, "clock.step_s",
		    status->sums.samples ? sy_micro_or_null(status->clock_step_us) : json_null(),
		    "no sample was taken");
	sy_json_put(record, "sampler.rate_hz", json_real(status->rate_hz), NULL);
	sy_json_put(record, "sampler.samples", json_integer(status->sums.samples - status->lost),
		    NULL);
	sy_json_put(record, "sampler.samples_lost", json_integer(status->lost), NULL);
	sy_json_put(record, "sampler.samples_lost_reason",
		    status->lost ? json_string(strerror(status->lost_errno)) : json_null(),
		    "none was lost");
	sy_json_put(record, "sampler.missed_deadlines", json_integer(status->missed_deadlines),
		    NULL);
	sy_json_put(record, "sampler.cpu_s", sy_micro_or_null(status->cpu_ns / 1000), NULL);
	sy_json_put(record, "sampler.max_memory_bytes", sy_count_or_null(status->max_memory_bytes),
		    "the sampler did not live to its end");
}

void sy_record_in_kernel(json_t *record, const struct sy_status *status)
{
	const char *reason = missing_bpf_reason(status);

	sy_json_put(record, "bpf.missed_ends",
		    status->io_source == SY_SOURCE_BPF && !status->nothing_named
			? json_integer(status->missed_ends)
			: json_null(),
		    reason);
	sy_json_put(record, "bpf.by_cgroup", status->bpf_by_cgroup ? json_true() : json_null(),
		    status->bpf_no_group_reason[0] ? status->bpf_no_group_reason
						   : "no cgroup of the job was reported");
	sy_json_put(record, "bpf.unread_tasks", json_integer(status->unread_tasks), NULL);
	sy_json_put(record, "bpf.ticks", json_integer(status->ticks), NULL);
	sy_json_put(record, "bpf.ticks_s", sy_micro_or_null(status->ticks_us), NULL);
}

/* SY_UNKNOWN is below every number. */
static int64_t larger_of(int64_t one, int64_t other)
{
	return one > other ? one : other;
}

static const char no_io_reason[] =
    "/proc/self/io, which has the bytes of children that were waited for, could not be read";

static void put_exact_use(json_t *record, const struct sy_exact *exact,
			  const struct sy_status *status)
{
	sy_json_put(record, "cpu.cpu_s", sy_micro_or_null(exact->cpu_us), NULL);
	sy_json_put(record, "cpu.user_s", sy_micro_or_null(exact->user_us), NULL);
	sy_json_put(record, "cpu.system_s", sy_micro_or_null(exact->system_us), NULL);
	sy_json_put(record, "cpu.source", source(SY_SOURCE_RUSAGE), NULL);
	/* Of children that nobody waited for only the kernel's program may know. */
	put_faults(record, larger_of(exact->minor_faults, status->minor_faults),
		   larger_of(exact->major_faults, status->major_faults), NULL);
	/* What samples show of living processes is no total. */
	if (!exact->io_known && status->io_source == SY_SOURCE_BPF)
		return;
	for (int i = 0; i < 4; i++)
		sy_json_put(record, sy_total_facts[SY_RCHAR_BYTES + i].path,
			    exact->io_known ? json_integer(exact->io[i]) : json_null(),
			    no_io_reason);
	sy_json_put(record, "io.source", exact->io_known ? source(SY_SOURCE_REAPED) : json_null(),
		    no_io_reason);
}

void sy_record_exact(json_t *record, const struct sy_exact *exact, const struct sy_status *status)
{
	const struct sy_sums *sums = &status->sums;
	bool larger = !sums->unsure[SY_MAX_MEMORY_BYTES] &&
		      exact->max_memory_bytes >= sums->largest[SY_MAX_MEMORY_BYTES];

	sy_json_put(record, "exit.exit_code",
		    exact->exit_code < 0 ? json_null() : json_integer(exact->exit_code),
		    "it was ended by a signal");
	sy_json_put(record, "exit.signal",
		    exact->signal < 0 ? json_null() : json_integer(exact->signal),
		    "it was not ended by a signal");
	sy_json_put(record, "exit.elapsed_s",
		    exact->known ? sy_micro_or_null(exact->elapsed_us) : json_null(),
		    "the command could not be started");
	if (!exact->known)
		return;
	if (!sy_exact_lacks(exact, status))
		put_exact_use(record, exact, status);
	if (status->io_source != SY_SOURCE_BPF)
		sy_json_put(record, "cpu.unseen_s", json_null(),
			    "no cgroup counts the command's CPU: the kernel has added up all that "
			    "ended below it, but children of a parent that ignores SIGCHLD");
	if (larger) {
		sy_json_put(record, "memory.max_memory_bytes",
			    json_integer(exact->max_memory_bytes), NULL);
		sy_json_put(record, "memory.source", source(SY_SOURCE_RUSAGE), NULL);
	}
}

/* Instead of that there was no value in the last sample. */
static void explain_off(json_t *record, const char *path, const char *reason)
{
	const char *known = sy_json_reason(record, path);

	if (known && !strcmp(known, SY_NO_VALUE))
		sy_json_explain(record, path, reason);
}

static bool is_null(const json_t *record, int device, const char *field)
{
	const json_t *devices = json_object_get(json_object_get(record, "network"), "devices");

	return json_is_null(json_object_get(json_array_get(devices, (size_t)device), field));
}

static void explain_lost_device(json_t *record, const struct sy_node *node, int i)
{
	static const char *const fields[] = {"rx_bytes", "tx_bytes"};
	char path[64], reason[128];

	(void)snprintf(
	    reason, sizeof(reason),
	    "the counter of %.32s could not be read to the end: the device was taken away",
	    node->device[i].name);
	for (int k = 0; k < 2; k++) {
		(void)snprintf(path, sizeof(path), "network.devices.%d.%s", i, fields[k]);
		explain_off(record, path, reason);
		(void)snprintf(path, sizeof(path), "network.%s", fields[k]);
		if (node->device[i].counted && is_null(record, i, fields[k]))
			explain_off(record, path, reason);
	}
}

static void put_dropped(json_t *record, const struct sy_node *node, int i, const char *file,
			int64_t before)
{
	int64_t now = sy_node_dropped(node, i, file);
	bool known = now != SY_UNKNOWN && before != SY_UNKNOWN && now >= before;
	char path[64];

	(void)snprintf(path, sizeof(path), "network.devices.%d.%s", i, file);
	sy_json_put(record, path, known ? json_integer(now - before) : json_null(),
		    "the device's statistics could not be read");
}

void sy_record_dropped(json_t *record, const struct sy_head *head)
{
	for (int i = 0; i < head->node->devices; i++) {
		put_dropped(record, head->node, i, "rx_dropped", head->dropped_rx[i]);
		put_dropped(record, head->node, i, "tx_dropped", head->dropped_tx[i]);
		explain_lost_device(record, head->node, i);
	}
}

void sy_record_off(json_t *record, const struct sy_status *status)
{
	const char *reason = "sampling was switched off (rate 0): there are totals only";
	const char *no_value_reason =
	    "sampling was switched off (rate 0), and not every step of the job has "
	    "reported its usage";
	bool is_exact =
	    status->memory_source == SY_SOURCE_RUSAGE || status->memory_source == SY_SOURCE_BPF;

	sy_record_no_tcp(record, reason);
	for (int i = 0; i < SY_TOTALS; i++) {
		bool is_retained = i == SY_MAX_MEMORY_BYTES && is_exact;

		if (is_of_moments((enum sy_total)i) && !is_retained)
			sy_json_put(record, sy_total_facts[i].path, json_null(), reason);
		if (sy_total_facts[i].whose == SY_OF_REAPED)
			explain_off(record, sy_total_facts[i].path, no_value_reason);
	}
	if (!is_exact)
		sy_json_put(record, "memory.source", json_null(), reason);
	if (!status->nothing_named) {
		sy_json_explain(record, "cpu.source", no_value_reason);
		sy_json_explain(record, "io.source", no_value_reason);
	}
	explain_off(record, "energy.energy_j",
		    "sampling was switched off (rate 0): read at the start and the end only, and "
		    "in between a counter may have wrapped");
}
