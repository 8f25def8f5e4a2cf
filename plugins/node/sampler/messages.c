#include "sampler/messages.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_document.h"
#include "counters/cgroup.h"
#include "counters/job_connections.h"
#include "counters/process_members.h"
#include "meters/slow_readings.h"
#include "record/record.h"
#include "sampler/child_state.h"
#include "sampler/job_usage.h"
#include "sampler/sample_taking.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define WHY_MAX 95 /* bytes: the record has it whole */

/* From columns, and from values of the status that have no column. */
static int64_t read_total(const struct sy_status *status, enum sy_total which)
{
	bool counted = status->io_source == SY_SOURCE_BPF;

	if (which == SY_GPU_ENERGY_J)
		return status->gpu_energy_uj;
	if (which == SY_CPU_UNSEEN_S)
		return counted ? 0 : status->gap_us;
	return sy_sums_total(&status->sums, which);
}

static size_t append(char *text, size_t size, size_t used, const char *name, int64_t value,
		     bool micro)
{
	char number[40] = "null";
	int length;

	if (value != SY_UNKNOWN && micro)
		(void)snprintf(number, sizeof(number), "%lld.%06lld", (long long)value / 1000000,
			       (long long)value % 1000000);
	else if (value != SY_UNKNOWN)
		(void)snprintf(number, sizeof(number), "%lld", (long long)value);
	length =
	    snprintf(text + used, size - used, "%s\"%s\":%s", used > 1 ? "," : "", name, number);
	return used + (size_t)length;
}

static const json_t *find_member(const json_t *object, const char *section, const char *name)
{
	return json_object_get(json_object_get(object, section), name);
}

/* {"name": …} of a layer, or the kernel's release, in the shape of the record. */
static json_t *copy_member(const json_t *object, const char *name)
{
	json_t *found = json_object();

	(void)json_object_set(found, name, json_object_get(object, name));
	return found;
}

static json_t *copy_probe(const json_t *record)
{
	const json_t *probe = json_object_get(record, "probe");
	json_t *found = copy_member(probe, "node_type"), *layers = json_object();

	(void)json_object_set_new(layers, "vm",
				  copy_member(find_member(probe, "virtualization", "vm"), "name"));
	(void)json_object_set_new(
	    layers, "container",
	    copy_member(find_member(probe, "virtualization", "container"), "name"));
	(void)json_object_set_new(found, "virtualization", layers);
	(void)json_object_set_new(found, "kernel",
				  copy_member(json_object_get(probe, "kernel"), "release"));
	return found;
}

/* "Not over yet" is left out: it is no reason at the job's end. */
static json_t *copy_reasons(const json_t *record)
{
	json_t *found = json_object();

	for (int i = 0; i <= SY_TOTALS; i++) {
		const char *path = i < SY_TOTALS ? sy_total_facts[i].path : "energy.gpus.of_job";
		const char *reason = sy_json_reason(record, path);

		if (reason && strcmp(reason, SY_NOT_YET) != 0)
			(void)json_object_set_new(found, path,
						  json_sprintf("%.*s", WHY_MAX, reason));
	}
	return found;
}

void sy_answer_kind(const json_t *record, char *text, size_t size)
{
	json_t *object = json_object();
	cleanup_free char *line = NULL;
	size_t length;

	(void)json_object_set_new(object, "probe", copy_probe(record));
	(void)json_object_set_new(object, "missing", copy_reasons(record));
	line = sy_json_dump(object, JSON_COMPACT);
	json_decref(object);
	length = line ? strlen(line) : 0;
	text[0] = '\0';
	if (length >= 2 && length - 2 < size)
		(void)snprintf(text, size, "%.*s", (int)length - 2, line + 1);
}

/* As the record will say (record/completeness.c), of what is known before its end: while a step
 * runs, its reports cannot be compared with the cgroup yet. */
static const char *find_incompleteness(const struct sy_status *status)
{
	bool by_cgroup = status->cpu_source != SY_SOURCE_PROCESSES;

	if (status->io_source == SY_SOURCE_BPF)
		return status->unsettled || status->survivors ? "uncounted" : NULL;
	if (status->nothing_named)
		return NULL;
	if (sy_has_gap(status))
		return by_cgroup ? "unseen" : "uncounted";
	if (status->gap_us != SY_UNKNOWN)
		return NULL;
	return status->group_gone || !by_cgroup ? "uncounted" : NULL;
}

/* Returns the length; no NUL ends it. */
static size_t format_totals(const struct sy_sampler *s, int64_t question, char *text, size_t size)
{
	const struct sy_shared *shared = s->child->shared;
	const struct sy_status *status = &s->status;
	const char *kind = shared->kind[atomic_load(&shared->kind_current) & 1];
	const char *memory_source = sy_source_name(status->memory_source);
	const char *incompleteness = find_incompleteness(status);
	size_t used = 1;

	text[0] = '{';
	if (question >= 0)
		used = append(text, size - 1, used, "question", question, false);
	used = append(text, size - 1, used, "start", s->wall.start_unix_s, false);
	used = append(text, size - 1, used, "exclusive", status->exclusive, false);
	for (int i = 0; i < SY_TOTALS; i++) {
		const struct sy_total_fact *fact = &sy_total_facts[i];
		bool exists = i != SY_GPU_ENERGY_J || status->has_gpus;

		if (sy_is_in_comment((enum sy_total)i) && exists)
			used =
			    append(text, size - 1, used, fact->name,
				   read_total(status, (enum sy_total)i), sy_is_micro(fact->unit));
	}
	if (memory_source && sy_sums_total(&status->sums, SY_MAX_MEMORY_BYTES) != SY_UNKNOWN)
		used += (size_t)snprintf(text + used, size - 1 - used, ",\"memory_source\":\"%s\"",
					 memory_source);
	if (incompleteness)
		used = append(text, size - 1, used, incompleteness, 1, false);
	if (status->other_networks)
		used = append(text, size - 1, used, "other_networks", 1, false);
	if (kind[0] && used + strlen(kind) + 2 < size)
		used += (size_t)snprintf(text + used, size - used, ",%s", kind);
	text[used++] = '}';
	return used;
}

/* The parent keeps what messages say of the job. This copy is only to know whose GPUs are whose. */
static void read_notes(const struct sy_shared *shared, const struct sy_job_notes *notes)
{
	size_t used = atomic_load(&shared->notes_used);

	for (size_t at = 0; at < used; at += strlen(shared->notes + at) + 1) {
		char copy[SY_MESSAGE_SIZE];
		struct sy_message message;

		(void)snprintf(copy, sizeof(copy), "%s", shared->notes + at);
		if (sy_message_parse(copy, &message, NULL) == 0)
			sy_message_apply(&message, notes);
	}
}

static void read_gpus(struct sy_sampler *s)
{
	const struct sy_meters *meters = &s->child->node->meters;
	const struct sy_job_notes *notes = &s->child->sampling->notes;

	s->status.has_gpus = sy_has_gpus(meters);
	if (!s->status.has_gpus)
		return;
	read_notes(s->child->shared, notes);
	s->status.gpu_energy_uj =
	    sy_gpu_energy_uj(meters, notes, &s->status.sums.last.cell[SY_ZONE]);
}

static void answer_totals(struct sy_sampler *s, int64_t question, const struct sockaddr_un *to,
			  socklen_t length)
{
	char text[SY_MESSAGE_SIZE];
	size_t used;

	if (question >= 0)
		sy_slow_request(s->child->node->meters.slow, SY_LAST_READING_US);
	sy_sampler_sample(s, SY_READING_NOW);
	sy_sampler_write(s, sy_now_us(CLOCK_MONOTONIC));
	read_gpus(s);
	used = format_totals(s, question, text, sizeof(text));
	(void)sendto(s->child->control_fd, text, used, MSG_DONTWAIT | MSG_NOSIGNAL,
		     (const struct sockaddr *)to, length);
}

static void use_cgroup(struct sy_sampler *s, const char *path)
{
	if (s->job.cgroup.path[0]) { /* the first one is the whole job's */
		sy_job_add_step(&s->job);
		return;
	}
	sy_cgroup_open(&s->job.cgroup, s->child->node->root, path);
	sy_processes_cgroup(&s->job.processes, s->job.cgroup.path);
	sy_kernel_count_use_cgroup(s->child->kernel, s->child->node->root, path,
				   s->child->sampling);
	sy_job_start_counting(&s->job, s->child->node->root);
	sy_job_report_cpu_source(&s->job, &s->status);
	sy_tcp_cgroup(&s->tcp, s->child->node->root, path);
	if (s->job.cgroup.pressure_fd[0] >= 0) {
		sy_node_pressure_from(s->child->node, s->job.cgroup.pressure_fd);
		s->status.pressure_of_job = true;
	}
}

static void handle_rate(struct sy_sampler *s, double rate_hz)
{
	sy_sampler_rate(s, rate_hz);
	sy_sampler_write(s, sy_now_us(CLOCK_MONOTONIC));
	sy_sampler_publish(s, sy_now_us(CLOCK_MONOTONIC));
}

static void handle_root(struct sy_sampler *s, const struct sy_message *message)
{
	sy_job_add_root(&s->job, message->pid, message->number[0], message->number[1]);
	sy_step_groups_add(&s->job.steps, message->pid);
	sy_lifetime_add_root(&s->life, message->pid);
	sy_tcp_recheck(&s->tcp);
	if (!s->period_us) /* from now on a step is known */
		sy_sampler_sample(s, SY_READING_NOW);
}

static void handle_root_done(struct sy_sampler *s, const struct sy_message *message)
{
	struct sy_usage final = {{message->number[0] * 1000, message->number[1], message->number[2],
				  message->number[3], message->number[4]}};

	sy_kernel_count_end_root(s->child->kernel, message->pid);
	sy_processes_done(&s->job.processes, message->pid, &final);
	sy_step_groups_done(&s->job.steps, message->pid, message->number[0]);
	s->status.io_inseparable |= !message->has_bytes;
	s->job.processes.named = true;
	s->job.exact |= s->child->command;
	/* The job may end now: its cgroup is removed, and another node reads our file. */
	if (!s->period_us || sy_job_all_reported(&s->job)) {
		sy_sampler_sample(s, SY_READING_NOW);
		sy_job_split(&s->job, &s->status);
	}
	sy_sampler_write(s, sy_now_us(CLOCK_MONOTONIC));
}

static void handle_process(struct sy_sampler *s, const struct sy_message *message)
{
	if (message->word == SY_WORD_SESSION)
		sy_processes_add_session(&s->job.processes, message->pid);
	else
		sy_kernel_count_add_process(s->child->kernel, message->pid);
}

/* A thousand tasks may send the same list of GPUs. */
static bool has_note(const struct sy_shared *shared, const char *text)
{
	size_t used = atomic_load(&shared->notes_used);

	for (size_t at = 0; at < used; at += strlen(shared->notes + at) + 1)
		if (!strcmp(shared->notes + at, text))
			return true;
	return false;
}

/* For the parent, which writes the record. */
static void add_note(struct sy_sampler *s, const char *text)
{
	struct sy_shared *shared = s->child->shared;
	size_t used = atomic_load(&shared->notes_used), length = strlen(text) + 1;

	if (used + length > SY_NOTES_SIZE) {
		s->status.dropped_notes++;
		return;
	}
	memcpy(shared->notes + used, text, length);
	atomic_store(&shared->notes_used, used + length);
	(void)send(s->child->parent_fd, "n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A job that shared the node at any time was not alone, whatever its scheduler reports later. */
static void note_exclusive(struct sy_sampler *s, const struct sy_message *message, const char *text)
{
	if (s->status.exclusive == 0)
		return;
	s->status.exclusive = message->exclusive;
	add_note(s, text);
}

static void handle_message(struct sy_sampler *s, const char *text, const struct sockaddr_un *from,
			   socklen_t length)
{
	struct sy_message message;

	if (sy_message_parse(text, &message, NULL) < 0)
		return; /* `send` has checked it; others get no answer */
	switch (message.word) {
	case SY_WORD_ROOT:
		handle_root(s, &message);
		break;
	case SY_WORD_CGROUP:
		use_cgroup(s, message.value);
		break;
	case SY_WORD_COUNTED:
		if (!s->job.cgroup.path[0]) /* the first one is the whole job's */
			s->job.counted_us = message.number[0];
		break;
	case SY_WORD_RATE:
		handle_rate(s, message.rate_hz);
		break;
	case SY_WORD_DONE:
		handle_root_done(s, &message);
		break;
	case SY_WORD_PEAK:
		sy_job_note_memory(&s->status, message.number[0], SY_SOURCE_RUSAGE);
		break;
	case SY_WORD_TOTALS:
		answer_totals(s, message.number[0], from, length);
		break;
	case SY_WORD_LEAVE:
		s->life.leaving = s->life.check_survivors = true;
		break;
	case SY_WORD_SESSION:
	case SY_WORD_ATTACH:
		handle_process(s, &message);
		break;
	case SY_WORD_INTIME:
		s->status.late_us = 0;
		sy_kernel_count_begun_in_time(s->child->kernel);
		break;
	case SY_WORD_LATE:
		s->status.begun_late = true;
		break;
	case SY_WORD_LOST:
		s->status.watch_lost = s->end = true;
		break;
	case SY_WORD_END:
		s->end = s->job.end_requested = true;
		break;
	case SY_WORD_EXCLUSIVE:
		note_exclusive(s, &message, text);
		break;
	case SY_WORD_GPUS:
		if (!has_note(s->child->shared, text))
			add_note(s, text);
		break;
	default: /* about the job */
		add_note(s, text);
	}
}

void sy_sampler_listen(struct sy_sampler *s, int fd)
{
	char text[SY_MESSAGE_SIZE];

	while (!s->end) {
		struct sockaddr_un from;
		socklen_t length = sizeof(from);
		ssize_t got = recvfrom(fd, text, sizeof(text) - 1, MSG_DONTWAIT,
				       (struct sockaddr *)&from, &length);

		if (got < 0 || (got == 0 && fd == s->child->parent_fd))
			return;
		text[got] = '\0';
		handle_message(s, text, &from, length);
	}
}
