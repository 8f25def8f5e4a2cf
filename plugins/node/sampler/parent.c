#include "sampler/parent.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/kernel_uapi.h"
#include "meters/meters.h"
#include "probe/probe.h"
#include "record/unfinished_records.h"
#include "sampler/child_state.h"
#include "sampler/control_socket.h"
#include "sampler/memory_footprint.h"
#include "sampler/messages.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define READY_MS 2000 /* for the first sample; then the command starts all the same */
#define END_MS	 5000 /* for the last one; then the child is killed */

static void complain(const struct sy_sampling *sampling, const struct sy_error *err)
{
	(void)fprintf(stderr, "steelyard-node sample: job %s: %s\n", sampling->job_id, err->text);
}

/* --- starting --- */

static int open_files(struct sy_parent *p, struct sy_error *err)
{
	struct sy_sampling *sampling = p->sampling;
	int opening = sampling->run_dir ? sy_opening_begin(sampling->run_dir) : -1, result;

	p->file = (struct sy_recordfile){.has_owner = sampling->has_owner,
					 .uid = sampling->owner_uid,
					 .gid = sampling->owner_gid};
	result = sy_recordfile_open_or_spool(&p->file, sampling, complain, err);
	sy_opening_end(sampling->run_dir, opening);
	if (result < 0)
		return -1;
	p->has_record = true;
	if (sampling->run_dir && /* without the mark the job is measured all the same */
	    sy_unfinished_mark(sampling, &p->file, p->mark, sizeof(p->mark), err) < 0)
		complain(sampling, err);
	p->csv_fd = sy_recordfile_samples(&p->file, err);
	if (p->csv_fd < 0)
		return -1;
	(void)snprintf(p->samples_file, sizeof(p->samples_file), "%s.csv", p->file.name);
	p->head.samples_file = p->samples_file;
	return 0;
}

static int open_all(struct sy_parent *p, struct sy_error *err)
{
	struct sy_sampling *sampling = p->sampling;
	int64_t begun_us;

	p->root = sy_root_open(sampling->root_dir, err);
	if (p->root < 0)
		return -1;
	sy_node_find(&p->node, p->root);
	sy_node_open(&p->node);
	for (int i = 0; i < p->node.devices; i++) {
		p->head.dropped_rx[i] = sy_node_dropped(&p->node, i, "rx_dropped");
		p->head.dropped_tx[i] = sy_node_dropped(&p->node, i, "tx_dropped");
	}
	p->head.sampling = sampling;
	p->head.node = &p->node;
	p->control_fd = sy_control_open(sampling->control, sampling->control_fd, err);
	if (p->control_fd < 0 && sampling->control)
		return -1;
	/* A record of nothing would be the newest one of a job that has begun once more. */
	if (sy_control_is_given_up(sampling))
		return sy_fail(err, "it has ended, or begun once more, before this sampler did");
	begun_us = sy_now_us(CLOCK_MONOTONIC);
	if (open_files(p, err) < 0)
		return -1;
	p->opening_us = sy_now_us(CLOCK_MONOTONIC) - begun_us;
	p->head.start_unix_s = p->file.start_unix_s;
	sy_wall_begin(&p->wall, p->file.start_unix_s);
	return 0;
}

bool sy_parent_set_up(struct sy_parent *p)
{
	struct sy_error err;

	p->csv_fd = p->control_fd = p->child_fd = -1;
	if (open_all(p, &err) < 0) {
		complain(p->sampling, &err);
		return false;
	}
	sy_kernel_count_begin(&p->kernel, p->sampling);
	sy_slow_start(&p->node.meters, p->root);
	return true;
}

__attribute__((noreturn)) static void run_child(struct sy_parent *p, int parent_fd)
{
	struct sy_child child = {
	    .node = &p->node,
	    .shared = p->shared,
	    .csv_fd = p->csv_fd,
	    .control_fd = p->control_fd,
	    .parent_fd = parent_fd,
	    .watch_fd = -1,
	    .wall = p->wall,
	    .self = getpid(),
	    .parent = getppid(),
	    .command = p->sampling->command != NULL,
	    .sampling = p->sampling,
	    .kernel = &p->kernel,
	    .opening_us = !p->sampling->command && p->opening_us > SY_STALL_US ? p->opening_us : 0};

	if (p->sampling->watch) {
		child.watch_fd = (int)syscall(SYS_pidfd_open, p->sampling->watch, 0);
		if (child.watch_fd < 0 && errno == ESRCH && !p->sampling->linger_s)
			_exit(0); /* gone before we began: nothing to measure */
	}
	(void)close(p->child_fd);
	(void)close(p->signal_fd);
	sy_silence_streams(2);
	sy_child_run(&child);
}

static int start_child(struct sy_parent *p, struct sy_error *err)
{
	int pair[2];

	p->shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->shared == MAP_FAILED) {
		p->shared = NULL;
		return sy_fail_errno(err, errno, "cannot share memory with the sampler");
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return sy_fail_errno(err, errno, "cannot make a socket pair");
	p->child_fd = pair[0];
	/* Without a signal at its end: wait4(-1) finds the command's children alone, whose counters
	 * are added up. */
	p->child = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (p->child == 0)
		run_child(p, pair[1]);
	(void)close(pair[1]);
	if (p->child < 0)
		return sy_fail_errno(err, errno, "cannot start the sampler");
	return 0;
}

static void wait_until_ready(struct sy_parent *p)
{
	struct pollfd ready = {p->child_fd, POLLIN, 0};
	char byte;

	if (poll(&ready, 1, READY_MS) > 0)
		(void)recv(p->child_fd, &byte, 1, MSG_DONTWAIT);
}

/* To the descriptor of --print-path. */
static void print_path(const struct sy_parent *p)
{
	char text[4096];
	int length = snprintf(text, sizeof(text), "%s/%s/%s.json\n", p->sampling->record_dir,
			      p->file.job_path, p->file.name);

	if (length < (int)sizeof(text))
		(void)sy_write_all(p->sampling->print_fd, text, (size_t)length);
}

void sy_parent_start_child(struct sy_parent *p)
{
	struct sy_error err;

	if (start_child(p, &err) < 0)
		complain(p->sampling, &err);
	if (p->child > 0)
		wait_until_ready(p);
	if (p->has_record && p->sampling->print_fd >= 0)
		print_path(p);
}

static void write_record(struct sy_parent *p, json_t *record)
{
	struct sy_error err;

	if (record && p->has_record && sy_recordfile_write(&p->file, record, &err) < 0)
		complain(p->sampling, &err);
	json_decref(record);
	if (!p->end)
		sy_shrink(); /* the parent waits for hours: let it be small */
}

/* Its child has the node's kind of it, for answers. */
void sy_parent_write_first_record(struct sy_parent *p)
{
	json_t *record = sy_record_new(&p->head);
	unsigned next = p->shared ? atomic_load(&p->shared->kind_current) + 1 : 0;

	if (p->shared) {
		sy_answer_kind(record, p->shared->kind[next & 1], SY_KIND_SIZE);
		atomic_store(&p->shared->kind_current, next);
	}
	write_record(p, record);
}

void sy_parent_probe(struct sy_parent *p)
{
	struct sy_probe_options options = {.root = p->root, .run_programs = false};

	if (p->has_record)
		p->head.probe = sy_probe(&options);
}

/* --- waiting --- */

static bool apply_notes(struct sy_parent *p)
{
	size_t used;
	bool some = false;

	if (!p->shared)
		return false;
	used = atomic_load(&p->shared->notes_used);
	if (used > SY_NOTES_SIZE)
		used = SY_NOTES_SIZE;
	while (p->notes_read < used) {
		const char *text = p->shared->notes + p->notes_read;
		size_t length = strnlen(text, used - p->notes_read);
		char copy[SY_MESSAGE_SIZE];
		struct sy_message message;

		(void)snprintf(copy, sizeof(copy), "%.*s", (int)length, text);
		if (sy_message_parse(copy, &message, NULL) == 0)
			sy_message_apply(&message, &p->sampling->notes);
		p->notes_read += length + 1;
		some = true;
	}
	return some;
}

static void drain_child(struct sy_parent *p)
{
	char byte;

	while (recv(p->child_fd, &byte, 1, MSG_DONTWAIT) > 0)
		;
	(void)poll(NULL, 0, p->notes_ms);
	if (apply_notes(p))
		sy_parent_write_first_record(p);
}

/* Its end of the socket pair is closed: it has ended, or is about to. */
static void child_has_ended(struct sy_parent *p)
{
	int status;

	if (!sy_parent_has_child(p) || waitpid(p->child, &status, __WALL) != p->child)
		return;
	p->child_status = status;
	p->child_ended = true;
	p->end |= p->ends_with_child;
}

static void read_signals(struct sy_parent *p,
			 void (*on_signal)(struct sy_parent *p,
					   const struct signalfd_siginfo *info))
{
	struct signalfd_siginfo info;

	while (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(p, &info);
}

void sy_parent_wait(struct sy_parent *p,
		    void (*on_signal)(struct sy_parent *p, const struct signalfd_siginfo *info))
{
	while (!p->end) {
		struct pollfd fds[] = {{p->signal_fd, POLLIN, 0},
				       {p->child_ended ? -1 : p->child_fd, POLLIN, 0}};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			read_signals(p, on_signal);
		/* A hang-up comes together with POLLIN; notes are in the shared page anyway. */
		if (fds[1].revents & (POLLHUP | POLLERR))
			child_has_ended(p);
		else if (fds[1].revents)
			drain_child(p);
	}
}

bool sy_parent_has_child(const struct sy_parent *p)
{
	return p->child > 0 && !p->child_ended;
}

void sy_parent_send(struct sy_parent *p, const char *message)
{
	(void)send(p->child_fd, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* --- ending --- */

static void end_child(struct sy_parent *p)
{
	struct pollfd ended = {p->child_fd, 0, 0}; /* a hang-up is always reported */

	if (!sy_parent_has_child(p))
		return;
	sy_parent_send(p, "end");
	if (poll(&ended, 1, END_MS) <= 0)
		(void)kill(p->child, SIGKILL);
	if (waitpid(p->child, &p->child_status, __WALL) == p->child)
		p->child_ended = true;
}

static void write_last_record(struct sy_parent *p, const struct sy_exact *exact)
{
	struct sy_status *status = &p->shared->status[atomic_load(&p->shared->current) & 1];
	int64_t own = sy_own_max_memory_bytes();
	json_t *record;

	(void)apply_notes(p);
	status->lost += sy_sample_buffer_rescue(&p->shared->lines, p->csv_fd, &status->lost_errno);
	status->max_memory_bytes = own == SY_UNKNOWN || status->max_memory_bytes == SY_UNKNOWN
				       ? SY_UNKNOWN
				       : status->max_memory_bytes + own;
	status->cpu_ns += sy_now_us(CLOCK_PROCESS_CPUTIME_ID) * 1000 + sy_slow_end(&p->node.meters);
	record = sy_record_new(&p->head);
	sy_record_totals(record, &status->sums);
	sy_record_status(record, status);
	sy_record_meters_end(record, status, p->shared->meter_reason);
	sy_record_dropped(record, &p->head);
	sy_record_tcp(record, &status->tcp, &p->shared->tcp_counts);
	sy_record_conditions(record, p->sampling);
	sy_record_unshaped(record, status);
	if (p->sampling->bpf)
		sy_record_in_kernel(record, status);
	if (status->rate_hz <= 0)
		sy_record_off(record, status);
	if (exact)
		sy_record_exact(record, exact, status);
	sy_record_completeness(record, status, exact, p->child, p->child_status);
	write_record(p, record);
}

void sy_parent_close_record(struct sy_parent *p)
{
	if (p->has_record)
		sy_recordfile_close(&p->file);
	if (p->mark[0])
		sy_unfinished_end(p->sampling->run_dir, p->mark);
	p->has_record = false;
}

void sy_parent_finish(struct sy_parent *p, const struct sy_exact *exact)
{
	end_child(p);
	if (p->shared)
		write_last_record(p, exact);
	sy_parent_close_record(p);
	sy_kernel_count_end(&p->kernel, !p->sampling->command);
	sy_control_remove(p->sampling);
}
