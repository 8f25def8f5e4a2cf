/* The child: takes samples at absolute deadlines, listens to messages. No allocation. */
#include "sampler.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static struct {
	struct sy_child *child;
	struct sy_processes processes;
	struct sy_cgroup cgroup;
	struct sy_tcp tcp;
	struct sy_columns columns;
	struct sy_status status;
	struct sy_line line; /* of this sample */
	int64_t start_us, cpu_at_us, period_us, next_us;
	struct sy_waker waker;
	bool exact, end;
} s;

static volatile sig_atomic_t told_to_end;

static void on_term(int number)
{
	(void)number;
	told_to_end = 1;
}

static void publish(int64_t now_us)
{
	unsigned next = !atomic_load(&s.child->shared->current);

	/* A clock of one's own CPU time is a system call: a value of a second ago will do. */
	if (now_us - s.cpu_at_us >= 1000000 || s.status.finished) {
		s.status.cpu_ns = sy_now_us(CLOCK_PROCESS_CPUTIME_ID) * 1000;
		s.cpu_at_us = now_us;
	}
	s.child->shared->status[next] = s.status;
	atomic_store(&s.child->shared->current, next);
}

static void write_lines(int64_t now_us)
{
	if (s.child->csv_fd >= 0)
		s.status.lost += sy_unwritten_flush(&s.child->shared->lines, s.child->csv_fd,
						    now_us, &s.status.lost_errno);
}

static void add_line(int64_t now_us)
{
	struct sy_unwritten *lines = &s.child->shared->lines;

	if (s.child->csv_fd < 0)
		return;
	sy_unwritten_add(lines, sy_format_line(&s.columns, &s.line, sy_unwritten_room(lines)));
	if (s.end || sy_unwritten_is_due(lines, now_us + s.period_us))
		write_lines(now_us);
}

static void set_cell(enum sy_cell cell, int64_t value)
{
	int64_t before = s.status.sums.last.cell[cell];

	/* Totals do not go down, whatever the sources: SY_UNKNOWN is below every value. */
	s.line.cell[cell] = value > before ? value : before;
}

static void read_cpu(const struct sy_usage *total)
{
	int64_t group_us = s.cgroup.cpu_source ? sy_cgroup_cpu_us(&s.cgroup) : SY_UNKNOWN;

	if (s.exact || s.cgroup.cpu_source == SY_SOURCE_NONE)
		set_cell(SY_CPU, total->use[SY_USE_CPU_NS] / 1000);
	else
		set_cell(SY_CPU, group_us);
}

static void read_memory(void)
{
	int64_t group = SY_UNKNOWN;

	if (s.cgroup.memory_source != SY_SOURCE_NONE)
		group = sy_cgroup_memory_bytes(&s.cgroup, s.end);
	if (group != SY_UNKNOWN)
		s.line.cell[SY_MEMORY] = group;
	else if (s.cgroup.memory_source == SY_SOURCE_NONE)
		s.line.cell[SY_MEMORY] = sy_processes_rss_bytes(&s.processes);
}

static void read_io(const struct sy_usage *total)
{
	bool all_told = s.processes.done_roots > 0 && s.processes.open_roots == 0;

	s.status.io_source = all_told ? SY_SOURCE_REAPED : SY_SOURCE_PROCESSES;
	s.status.io_unreadable = s.processes.deaf && !all_told;
	if (s.status.io_unreadable)
		return;
	for (int i = SY_USE_RCHAR; i <= SY_USE_WRITE; i++)
		set_cell((enum sy_cell)((int)SY_RCHAR + i - (int)SY_USE_RCHAR), total->use[i]);
}

static void read_job(void)
{
	struct sy_usage total;

	s.status.nothing_named = !s.processes.named;
	if (s.status.nothing_named)
		return;
	sy_processes_refresh(&s.processes, s.end);
	total = sy_processes_total(&s.processes);
	read_cpu(&total);
	read_memory();
	read_io(&total);
	s.line.cell[SY_PROCESSES] = sy_processes_alive(&s.processes);
	s.status.overflowed = s.processes.overflowed;
}

static void read_tcp(int64_t now_us, bool now)
{
	s.line.cell[SY_RTT] = sy_tcp_read(&s.tcp, &s.processes, now_us, now);
	s.status.tcp = s.tcp.status;
}

/* The files are named by the whole second that the parent has found a moment ago. */
static int64_t start_unix_us(void)
{
	int64_t now = sy_now_us(CLOCK_REALTIME), end = (s.child->start_unix_s + 1) * 1000000;

	return now >= end && now < end + 1000000 ? end - 1 : now;
}

static void take_sample(void)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC);
	bool first = s.status.sums.samples == 0;

	sy_line_clear(&s.line);
	if (first)
		s.start_us = now;
	s.line.cell[SY_UNIX] = first ? start_unix_us() : sy_now_us(CLOCK_REALTIME);
	s.line.cell[SY_ELAPSED] = now - s.start_us;
	sy_node_read(s.child->node, now, first || s.end, &s.line);
	read_job();
	read_tcp(now, first || s.end);
	add_line(now);
	sy_sums_add(&s.status.sums, &s.line);
	for (int i = 0; i < s.child->node->zones; i++)
		s.status.wraps[i] = s.child->node->energy[i].wraps;
	publish(now);
}

static void set_rate(double rate_hz)
{
	int64_t limit = sy_node_max_period_us(s.child->node);

	s.status.rate_hz = rate_hz;
	s.period_us = rate_hz > 0 ? (int64_t)(1e6 / rate_hz + 0.5) : 0;
	if (s.period_us && limit && limit < s.period_us)
		s.period_us = limit;
	s.processes.period_us = s.period_us;
	s.next_us = sy_now_us(CLOCK_MONOTONIC) + s.period_us;
}

/* Keep a message about the job for the parent, who writes the record. */
static void note(const char *text)
{
	struct sy_shared *shared = s.child->shared;
	size_t used = atomic_load(&shared->notes_used), length = strlen(text) + 1;

	if (used + length > SY_NOTES_SIZE) {
		s.status.dropped_notes++;
		return;
	}
	memcpy(shared->notes + used, text, length);
	atomic_store(&shared->notes_used, used + length);
	(void)send(s.child->parent_fd, "n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void answer_totals(const struct sockaddr_un *to, socklen_t length)
{
	char text[1024];
	size_t used;

	if (s.period_us) {
		take_sample();
		write_lines(sy_now_us(CLOCK_MONOTONIC));
	}
	used = sy_totals_json(s.period_us ? &s.status.sums : NULL, text, sizeof(text));
	(void)sendto(s.child->control_fd, text, used, MSG_DONTWAIT | MSG_NOSIGNAL,
		     (const struct sockaddr *)to, length);
}

static void use_cgroup(const char *path)
{
	if (s.cgroup.path[0]) /* the first one counts: the whole job's */
		return;
	sy_cgroup_open(&s.cgroup, s.child->node->root, path);
	sy_processes_cgroup(&s.processes, s.cgroup.path);
	sy_tcp_cgroup(&s.tcp, s.child->node->root, path);
	if (s.cgroup.cpu_source != SY_SOURCE_NONE)
		s.status.cpu_source = s.cgroup.cpu_source;
	if (s.cgroup.memory_source != SY_SOURCE_NONE)
		s.status.memory_source = s.cgroup.memory_source;
	if (s.cgroup.pressure_fd[0] >= 0) {
		sy_node_pressure_from(s.child->node, s.cgroup.pressure_fd);
		s.status.pressure_of_job = true;
	}
}

static void root_done(const struct sy_message *message)
{
	struct sy_usage final = {{message->number[0] * 1000, message->number[1], message->number[2],
				  message->number[3], message->number[4]}};

	sy_processes_done(&s.processes, message->pid, &final);
	s.processes.named = true;
	s.exact |= s.child->command;
}

static void act(const char *text, const struct sockaddr_un *from, socklen_t length)
{
	struct sy_message message;

	if (sy_message_parse(text, &message, NULL) < 0)
		return; /* `send` has checked it; a stranger gets no answer */
	switch (message.word) {
	case SY_WORD_ROOT:
		sy_processes_root(&s.processes, message.pid);
		sy_tcp_recheck(&s.tcp);
		break;
	case SY_WORD_CGROUP:
		use_cgroup(message.value);
		break;
	case SY_WORD_RATE:
		set_rate(message.rate_hz);
		write_lines(sy_now_us(CLOCK_MONOTONIC));
		publish(sy_now_us(CLOCK_MONOTONIC));
		break;
	case SY_WORD_DONE:
		root_done(&message);
		/* The job may end now, and another node sum up what lies in our file. */
		write_lines(sy_now_us(CLOCK_MONOTONIC));
		break;
	case SY_WORD_TOTALS:
		answer_totals(from, length);
		break;
	case SY_WORD_END:
		s.end = true;
		break;
	default: /* about the job */
		note(text);
		break;
	}
}

/* All messages that wait. */
static void listen_to(int fd)
{
	char text[SY_MESSAGE_SIZE];

	while (!s.end) {
		struct sockaddr_un from;
		socklen_t length = sizeof(from);
		ssize_t got = recvfrom(fd, text, sizeof(text) - 1, MSG_DONTWAIT,
				       (struct sockaddr *)&from, &length);

		if (got < 0 || (got == 0 && fd == s.child->parent_fd))
			return;
		text[got] = '\0';
		act(text, &from, length);
	}
}

static void wait_until_next(void)
{
	int64_t left = s.next_us - sy_now_us(CLOCK_MONOTONIC);
	unsigned woken = sy_waker_sleep(&s.waker, !s.period_us ? -1 : left > 0 ? left : 0);

	if (woken & SY_WOKEN_CONTROL) /* before the parent's `end` */
		listen_to(s.child->control_fd);
	if (woken & SY_WOKEN_PARENT)
		listen_to(s.child->parent_fd);
	s.end |= (woken & SY_WOKEN_END) != 0;
}

static void sample_if_due(void)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC), late;

	if (!s.period_us || now < s.next_us)
		return;
	take_sample();
	late = (now - s.next_us) / s.period_us;
	s.status.missed_deadlines += late;
	s.next_us += (late + 1) * s.period_us;
}

static void take_last_sample(void)
{
	s.end = true;
	if (s.period_us) {
		take_sample();
		if (s.cgroup.cpu_source &&
		    sy_cgroup_cpu_split_us(&s.cgroup, s.child->node->root, &s.status.user_us,
					   &s.status.system_us) < 0)
			s.status.user_us = s.status.system_us = SY_UNKNOWN;
	}
	s.status.max_memory_bytes = sy_own_max_memory_bytes();
	s.status.finished = true;
	publish(sy_now_us(CLOCK_MONOTONIC));
}

static void set_signals(void)
{
	struct sigaction end = {.sa_handler = on_term};
	sigset_t term;

	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigaction(SIGTERM, &end, NULL);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &term, NULL); /* SIGTERM comes in ppoll only */
	(void)setpgid(0, 0);
}

static void prepare(struct sy_child *child)
{
	s.child = child;
	s.status.cpu_source = s.status.memory_source = SY_SOURCE_PROCESSES;
	s.status.io_source = SY_SOURCE_PROCESSES;
	s.status.user_us = s.status.system_us = s.status.max_memory_bytes = SY_UNKNOWN;
	sy_sums_init(&s.status.sums);
	sy_cgroup_init(&s.cgroup);
	sy_columns_init(&s.columns, &child->node->labels);
	sy_tcp_init(&s.tcp, sy_job_user(child->plan), &child->shared->rtt_counts);
	set_signals();
	s.waker = (struct sy_waker){.parent_fd = child->parent_fd,
				    .control_fd = child->control_fd,
				    .watch_fd = child->watch_fd,
				    .watch = child->plan->watch};
	if (sy_waker_open(&s.waker) < 0 ||
	    sy_processes_init(&s.processes, child->self, child->parent, sy_raise_file_limit(),
			      NULL) < 0)
		_exit(1);
}

static void begin(void)
{
	const struct sy_plan *plan = s.child->plan;
	struct sy_unwritten *lines = &s.child->shared->lines;

	if (sy_rights_drop(NULL) < 0)
		_exit(1); /* never sample with more rights than needed: the record says why */
	if (s.child->command)
		sy_processes_root(&s.processes, s.child->parent);
	for (int i = 0; i < plan->roots; i++)
		sy_processes_root(&s.processes, plan->root[i]);
	set_rate(plan->rate_hz);
	if (s.child->csv_fd >= 0)
		sy_unwritten_add(lines, sy_format_header(&s.child->node->labels, lines->text));
	if (s.period_us)
		take_sample();
	else
		write_lines(s.next_us);
	publish(sy_now_us(CLOCK_MONOTONIC));
	(void)send(s.child->parent_fd, "r", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	sy_shrink();
}

void sy_child_run(struct sy_child *child)
{
	prepare(child);
	begin();
	while (!s.end && !told_to_end) {
		wait_until_next();
		if (!s.end && !told_to_end)
			sample_if_due();
	}
	take_last_sample();
	_exit(0);
}
