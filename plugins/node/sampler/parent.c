/* Starts the child and the command, waits, writes the record. */
#include "sampler/parent.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/kernel.h"
#include "bpf/job.h"
#include "counters/command_usage.h"
#include "meters/meters.h"
#include "probe/probe.h"
#include "record/record.h"
#include "record/unfinished.h"
#include "record/file.h"
#include "sampler/answer.h"
#include "sampler/child.h"
#include "sampler/footprint.h"
#include "sampler/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define READY_MS 2000 /* for the first sample; then the command starts all the same */
#define END_MS	 5000 /* for the last one; then the child is killed */
#define NOTES_MS 200  /* messages in a row make one new record */

static struct {
	struct sy_sampling *sampling;
	struct sy_node node;
	struct sy_head head;
	struct sy_shared *shared;
	struct sy_recordfile file;
	struct sy_exact exact;
	struct sy_wall wall;
	struct sy_in_kernel kernel;
	char samples_file[320];
	char mark[512]; /* of an unfinished record */
	size_t notes_read;
	int control_fd, csv_fd, child_fd, signal_fd, root;
	pid_t child, command;
	int child_status; /* as from waitpid, when it has ended */
	bool child_ended, end, record;
} p;

static void complain(const struct sy_error *err)
{
	(void)fprintf(stderr, "steelyard-node sample: job %s: %s\n", p.sampling->job_id, err->text);
}

/* --- starting --- */

static int open_files(struct sy_error *err)
{
	struct sy_sampling *sampling = p.sampling;
	int opening = sampling->run_dir ? sy_opening_begin(sampling->run_dir) : -1, result;

	p.file = (struct sy_recordfile){.has_owner = sampling->has_owner,
					.uid = sampling->owner_uid,
					.gid = sampling->owner_gid};
	result = sy_recordfile_open_or_spool(&p.file, sampling, complain, err);
	sy_opening_end(sampling->run_dir, opening);
	if (result < 0)
		return -1;
	p.record = true;
	if (sampling->run_dir && /* without the mark the job is measured all the same */
	    sy_unfinished_mark(sampling, &p.file, p.mark, sizeof(p.mark), err) < 0)
		complain(err);
	p.csv_fd = sy_recordfile_samples(&p.file, err);
	if (p.csv_fd < 0)
		return -1;
	(void)snprintf(p.samples_file, sizeof(p.samples_file), "%s.csv", p.file.name);
	p.head.samples_file = p.samples_file;
	return 0;
}

static void run_child(int parent_fd)
{
	struct sy_child child = {.node = &p.node,
				 .shared = p.shared,
				 .csv_fd = p.csv_fd,
				 .control_fd = p.control_fd,
				 .parent_fd = parent_fd,
				 .watch_fd = -1,
				 .wall = p.wall,
				 .self = getpid(),
				 .parent = getppid(),
				 .command = p.sampling->command != NULL,
				 .sampling = p.sampling,
				 .kernel = &p.kernel};

	if (p.sampling->watch) {
		child.watch_fd = (int)syscall(SYS_pidfd_open, p.sampling->watch, 0);
		if (child.watch_fd < 0 && errno == ESRCH && !p.sampling->linger_s)
			_exit(0); /* gone before we began: nothing to measure */
	}
	(void)close(p.child_fd);
	(void)close(p.signal_fd);
	sy_keep_out_of_the_way();
	sy_child_run(&child);
}

static int start_child(struct sy_error *err)
{
	int pair[2];

	p.shared = sy_shared_new(err);
	if (!p.shared)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return sy_fail_errno(err, errno, "cannot make a socket pair");
	p.child_fd = pair[0];
	p.child = sy_fork_apart();
	if (p.child == 0)
		run_child(pair[1]);
	(void)close(pair[1]);
	if (p.child < 0)
		return sy_fail_errno(err, errno, "cannot start the sampler");
	return 0;
}

static void wait_until_ready(void)
{
	struct pollfd ready = {p.child_fd, POLLIN, 0};
	char byte;

	if (poll(&ready, 1, READY_MS) > 0)
		(void)recv(p.child_fd, &byte, 1, MSG_DONTWAIT);
}

/* Everything around the command; a fault here must not keep the command from running. */
static int set_up(struct sy_error *err)
{
	struct sy_sampling *sampling = p.sampling;

	p.root = sy_root_open(sampling->root_dir, err);
	if (p.root < 0)
		return -1;
	sy_node_find(&p.node, p.root);
	sy_node_open(&p.node);
	for (int i = 0; i < p.node.devices; i++) {
		p.head.dropped_rx[i] = sy_node_dropped(&p.node, i, "rx_dropped");
		p.head.dropped_tx[i] = sy_node_dropped(&p.node, i, "tx_dropped");
	}
	p.head.sampling = sampling;
	p.head.node = &p.node;
	p.control_fd = sy_control_open(sampling->control, sampling->control_fd, err);
	if (p.control_fd < 0 && sampling->control)
		return -1;
	/* A record of nothing would be the newest one of a job that has begun once more. */
	if (sy_control_is_given_up(sampling))
		return sy_fail(err, "it has ended, or begun once more, before this sampler did");
	if (open_files(err) < 0)
		return -1;
	p.head.start_unix_s = p.file.start_unix_s;
	sy_wall_begin(&p.wall, p.file.start_unix_s);
	return 0;
}

static void write_record(json_t *record)
{
	struct sy_error err;

	if (record && p.record && sy_recordfile_write(&p.file, record, &err) < 0)
		complain(&err);
	json_decref(record);
	if (!p.end)
		sy_shrink(); /* the parent waits for hours: let it be small */
}

/* The record as it is at the start; its child has the node's kind of it, for answers. */
static void write_first_record(void)
{
	json_t *record = sy_record_new(&p.head);
	unsigned next = p.shared ? atomic_load(&p.shared->kind_current) + 1 : 0;

	if (p.shared) {
		sy_answer_kind(record, p.shared->kind[next & 1], SY_KIND_SIZE);
		atomic_store(&p.shared->kind_current, next);
	}
	write_record(record);
}

static void make_probe(void)
{
	struct sy_probe_options options = {.root = p.root, .ask_others = false};

	if (!p.sampling->command) /* a job starts at this moment: give way to it */
		(void)setpriority(PRIO_PROCESS, 0, 10);
	if (p.record)
		p.head.probe = sy_probe(&options);
}

static bool take_notes(void)
{
	size_t used;
	bool some = false;

	if (!p.shared)
		return false;
	used = atomic_load(&p.shared->notes_used);
	if (used > SY_NOTES_SIZE)
		used = SY_NOTES_SIZE;
	while (p.notes_read < used) {
		const char *text = p.shared->notes + p.notes_read;
		size_t length = strnlen(text, used - p.notes_read);
		char copy[SY_MESSAGE_SIZE];
		struct sy_message message;

		(void)snprintf(copy, sizeof(copy), "%.*s", (int)length, text);
		if (sy_message_parse(copy, &message, NULL) == 0)
			sy_message_apply(&message, &p.sampling->told);
		p.notes_read += length + 1;
		some = true;
	}
	return some;
}

static void hear_child(void)
{
	char byte;

	while (recv(p.child_fd, &byte, 1, MSG_DONTWAIT) > 0)
		;
	(void)poll(NULL, 0, p.command ? 0 : NOTES_MS);
	if (take_notes())
		write_first_record();
}

/* The command and whatever it left behind; not the sampler, which is no ordinary child. */
static void reap(void)
{
	pid_t pid;

	while ((pid = sy_reap(p.command, WNOHANG, &p.exact)) > 0)
		p.end |= pid == p.command;
	p.exact.left_behind = p.exact.known && pid == 0;
}

static void on_signal(void)
{
	struct signalfd_siginfo info;

	while (read(p.signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap();
		else if (!p.command)
			p.end |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
		/* What a terminal sends has gone to the command as well. */
		else if (info.ssi_code != SI_KERNEL && p.command > 0)
			(void)kill(p.command, (int)info.ssi_signo);
	}
}

/* Its end of the socket pair is closed: it has ended, or is about to. */
static void child_has_ended(void)
{
	int status;

	if (p.child <= 0 || p.child_ended || waitpid(p.child, &status, __WALL) != p.child)
		return;
	p.child_status = status;
	p.child_ended = true;
	p.end |= !p.command; /* nothing more will be known */
}

static void wait_for_end(void)
{
	while (!p.end) {
		struct pollfd fds[] = {{p.signal_fd, POLLIN, 0},
				       {p.child_ended ? -1 : p.child_fd, POLLIN, 0}};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			on_signal();
		/* A hang-up comes together with POLLIN; notes are in the shared page anyway. */
		if (fds[1].revents & (POLLHUP | POLLERR))
			child_has_ended();
		else if (fds[1].revents)
			hear_child();
	}
}

/* --- ending --- */

static void tell_child(const char *text)
{
	(void)send(p.child_fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Our children's counters are in ours since they were waited for. */
static void tell_exact(void)
{
	char text[256];

	p.exact.io_known = sy_reaped_io(p.exact.io) == 0;
	if (p.child <= 0 || p.child_ended || !p.exact.known || !p.exact.io_known)
		return;
	(void)snprintf(text, sizeof(text), "done %d %lld %lld %lld %lld %lld", (int)getpid(),
		       (long long)p.exact.cpu_us, (long long)p.exact.io[0],
		       (long long)p.exact.io[1], (long long)p.exact.io[2],
		       (long long)p.exact.io[3]);
	tell_child(text);
}

static void end_child(void)
{
	struct pollfd ended = {p.child_fd, 0, 0}; /* a hang-up is always told */

	if (p.child <= 0 || p.child_ended)
		return;
	tell_child("end");
	if (poll(&ended, 1, END_MS) <= 0)
		(void)kill(p.child, SIGKILL);
	if (waitpid(p.child, &p.child_status, __WALL) == p.child)
		p.child_ended = true;
}

/* Nothing more will be written. */
static void close_record(void)
{
	if (p.record)
		sy_recordfile_close(&p.file);
	if (p.mark[0])
		sy_unfinished_end(p.sampling->run_dir, p.mark);
	p.record = false;
}

static void write_last_record(void)
{
	struct sy_status *status = &p.shared->status[atomic_load(&p.shared->current) & 1];
	json_t *record;

	(void)take_notes();
	status->lost += sy_sample_buffer_rescue(&p.shared->lines, p.csv_fd, &status->lost_errno);
	status->max_memory_bytes = sy_add_own_memory(status->max_memory_bytes);
	status->cpu_ns += sy_now_us(CLOCK_PROCESS_CPUTIME_ID) * 1000 + sy_slow_end(&p.node.meters);
	record = sy_record_new(&p.head);
	sy_record_totals(record, &status->sums);
	sy_record_status(record, status);
	sy_record_meters_end(record, status, p.shared->meter_why);
	sy_record_dropped(record, &p.head);
	sy_record_tcp(record, &status->tcp, &p.shared->tcp_counts);
	sy_record_conditions(record, p.sampling);
	sy_record_unshaped(record, status);
	if (p.sampling->bpf)
		sy_record_in_kernel(record, status);
	if (status->rate_hz <= 0)
		sy_record_off(record, status);
	if (p.sampling->command)
		sy_record_exact(record, &p.exact, status);
	sy_record_completeness(record, status, p.sampling->command ? &p.exact : NULL, p.child,
			       p.child_status);
	write_record(record);
}

int sy_sample(struct sy_sampling *sampling)
{
	struct sy_error err;

	p.sampling = sampling;
	p.csv_fd = p.control_fd = p.child_fd = p.exact.exit_code = p.exact.signal = -1;
	p.signal_fd = sy_take_signals();
	if (p.signal_fd < 0) /* no end would ever be seen */
		return sampling->command ? sy_run_unweighed(sampling->command) : SY_SAMPLE_UNABLE;
	bool able = set_up(&err) == 0;
	if (able)
		sy_in_kernel_begin(&p.kernel, sampling);
	if (able)
		sy_slow_start(&p.node.meters, p.root);
	(void)prctl(PR_SET_CHILD_SUBREAPER, sampling->command != NULL);
	if (!able) {
		complain(&err);
		close_record();
	}
	if (!able && !sampling->command)
		return SY_SAMPLE_UNABLE;
	if (sampling->command && able) { /* before anything is measured */
		make_probe();
		write_first_record();
	}
	if (able && start_child(&err) < 0)
		complain(&err);
	if (p.child > 0)
		wait_until_ready();
	if (p.record && sampling->print_fd >= 0) /* before it gives up its stdout */
		sy_print_path(sampling, &p.file);
	sy_in_kernel_own(&p.kernel, sampling);
	if (!sampling->command)
		make_probe();	    /* the first sample is not kept waiting */
	sy_bpf_reap(&p.kernel.bpf); /* takes a grace period: none of a command's time */
	if (sampling->command)
		p.command = sy_start_command(sampling->command, &p.exact);
	if (able && !sampling->command)
		write_first_record();
	p.end = sampling->command ? p.command < 0 : p.child <= 0; /* who would hear of the end? */
	reap();
	wait_for_end();
	tell_exact();
	end_child();
	if (p.shared)
		write_last_record();
	close_record();
	sy_in_kernel_end(&p.kernel, !sampling->command);
	sy_control_remove(sampling);
	return sampling->command ? sy_exit_code(&p.exact) : 0;
}
