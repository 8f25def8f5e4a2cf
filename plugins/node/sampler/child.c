/* Samples at absolute deadlines, messages in between. No allocation. */
#include "sampler/child.h"

#include "base/clock.h"
#include "base/rights.h"
#include "counters/processes_find.h"
#include "counters/processes_handed.h"
#include "counters/tcp_owner.h"
#include "sampler/answer.h"
#include "sampler/footprint.h"
#include "sampler/job.h"
#include "sampler/life.h"
#include "sampler/wakeup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LAST_READING_US 200000 /* for slow meters: who ends the job waits */
#define SOON_US		50000  /* how often processes that may come at any moment are looked for */

static struct {
	struct sy_child *child;
	struct sy_job job;
	struct sy_tcp tcp;
	struct sy_columns columns;
	struct sy_status status;
	struct sy_line line; /* of this sample */
	int64_t start_us, cpu_at_us, period_us, next_us;
	struct sy_wall wall;
	struct sy_wakeup wakeup;
	struct sy_life life;
	bool end;
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
		s.status.lost += sy_sample_buffer_flush(&s.child->shared->lines, s.child->csv_fd,
							now_us, &s.status.lost_errno);
}

static void add_line(int64_t now_us)
{
	struct sy_sample_buffer *lines = &s.child->shared->lines;

	if (s.child->csv_fd < 0)
		return;
	sy_sample_buffer_add(lines,
			     sy_format_line(&s.columns, &s.line, sy_sample_buffer_room(lines)));
	if (s.end || !s.period_us || sy_sample_buffer_is_due(lines, now_us + s.period_us))
		write_lines(now_us);
}

static void read_tcp(int64_t now_us, bool now)
{
	if (!s.period_us)
		return;
	s.line.cell[SY_RTT] = sy_tcp_read(&s.tcp, &s.job.processes, now_us, now);
	s.status.tcp = s.tcp.status;
}

static void take_sample(enum sy_look look)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC);
	bool first = s.status.sums.samples == 0;

	sy_line_clear(&s.line);
	if (first)
		s.start_us = now;
	s.line.cell[SY_UNIX] = first ? sy_wall_first_us(&s.wall) : sy_wall_us(&s.wall);
	s.status.clock_steps = s.wall.steps;
	s.status.clock_step_us = s.wall.step_us;
	s.line.cell[SY_ELAPSED] = now - s.start_us;
	sy_node_read(s.child->node, now, first || s.end, &s.line);
	sy_job_read(&s.job, s.end ? SY_LOOK_LAST : look, &s.line, &s.status);
	read_tcp(now, first || s.end);
	add_line(now);
	sy_sums_add(&s.status.sums, &s.line);
	sy_meters_tell(&s.child->node->meters, now, s.end, s.status.wraps, s.status.meter_us,
		       s.child->shared->meter_why);
	publish(now);
}

static void set_rate(double rate_hz)
{
	int64_t limit = sy_meters_max_period_us(&s.child->node->meters);

	s.status.rate_hz = rate_hz;
	s.period_us = rate_hz > 0 ? (int64_t)(1e6 / rate_hz + 0.5) : 0;
	if (s.period_us && limit && limit < s.period_us)
		s.period_us = limit;
	s.job.period_us = s.period_us;
	s.next_us = sy_now_us(CLOCK_MONOTONIC) + s.period_us;
}

static void answer_totals(int64_t question, const struct sockaddr_un *to, socklen_t length)
{
	char text[1024];
	size_t used;

	take_sample(SY_LOOK_NOW);
	write_lines(sy_now_us(CLOCK_MONOTONIC));
	used = sy_totals_json(question, s.wall.start_unix_s, &s.status, text, sizeof(text));
	(void)sendto(s.child->control_fd, text, used, MSG_DONTWAIT | MSG_NOSIGNAL,
		     (const struct sockaddr *)to, length);
}

static void use_cgroup(const char *path)
{
	if (s.job.cgroup.path[0]) { /* the first one counts: the whole job's */
		sy_job_step_is_there(&s.job);
		return;
	}
	sy_cgroup_open(&s.job.cgroup, s.child->node->root, path);
	sy_processes_cgroup(&s.job.processes, s.job.cgroup.path);
	sy_job_count_from_here(&s.job, s.child->node->root);
	sy_job_tell_sources(&s.job, &s.status);
	sy_tcp_cgroup(&s.tcp, s.child->node->root, path);
	if (s.job.cgroup.pressure_fd[0] >= 0) {
		sy_node_pressure_from(s.child->node, s.job.cgroup.pressure_fd);
		s.status.pressure_of_job = true;
	}
}

static void new_rate(double rate_hz)
{
	set_rate(rate_hz);
	write_lines(sy_now_us(CLOCK_MONOTONIC));
	publish(sy_now_us(CLOCK_MONOTONIC));
}

static void new_root(pid_t pid, int64_t faults)
{
	sy_job_root(&s.job, pid, faults);
	sy_step_groups_add(&s.job.steps, pid);
	sy_open_roots_add(&s.life.open, pid);
	sy_tcp_recheck(&s.tcp);
	if (!s.period_us) /* from now on it is known that a step came here */
		take_sample(SY_LOOK_NOW);
}

static void root_done(const struct sy_message *message)
{
	struct sy_usage final = {{message->number[0] * 1000, message->number[1], message->number[2],
				  message->number[3], message->number[4]}};

	sy_in_kernel_done(s.child->kernel, message->pid);
	sy_processes_done(&s.job.processes, message->pid, &final);
	sy_step_groups_done(&s.job.steps, message->pid, message->number[0]);
	s.status.io_unsure_bytes += message->number[5];
	s.job.processes.named = true;
	s.job.exact |= s.child->command;
	/* The job may end now: its cgroup goes, and another node sums up what lies in our file. */
	if (!s.period_us || sy_job_all_told(&s.job)) {
		take_sample(SY_LOOK_NOW);
		sy_job_split(&s.job, &s.status);
	}
	write_lines(sy_now_us(CLOCK_MONOTONIC));
}

/* For the parent, who writes the record. */
static void keep_note(const char *text)
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

static void act(const char *text, const struct sockaddr_un *from, socklen_t length)
{
	struct sy_message message;

	if (sy_message_parse(text, &message, NULL) < 0)
		return; /* `send` has checked it; a stranger gets no answer */
	switch (message.word) {
	case SY_WORD_ROOT:
		new_root(message.pid, message.number[0]);
		break;
	case SY_WORD_CGROUP:
		use_cgroup(message.value);
		break;
	case SY_WORD_RATE:
		new_rate(message.rate_hz);
		break;
	case SY_WORD_DONE:
		root_done(&message);
		break;
	case SY_WORD_PEAK:
		if (sy_sums_peak(&s.status.sums, message.number[0]))
			s.status.memory_source = SY_SOURCE_RUSAGE;
		break;
	case SY_WORD_TOTALS:
		answer_totals(message.number[0], from, length);
		break;
	case SY_WORD_LEAVE:
		s.life.leaving = s.life.look = true;
		break;
	case SY_WORD_SESSION:
		sy_processes_session(&s.job.processes, message.pid);
		break;
	case SY_WORD_LATE:
		s.status.begun_late = true;
		break;
	case SY_WORD_LOST:
		s.status.watch_lost = s.end = true;
		break;
	case SY_WORD_END:
		s.end = true;
		break;
	default: /* about the job */
		keep_note(text);
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

/* The one who started us goes, or was killed: as long as a process of the job runs, so do we. */
static void look_who_is_left(void)
{
	if (s.job.processes.starter.pid && !s.life.leaving && !s.life.until_us)
		take_sample(SY_LOOK_NOW); /* there may be some that no sample has seen yet */
	if (sy_life_goes_on(&s.life, &s.job.processes, &s.wakeup, sy_now_us(CLOCK_MONOTONIC)))
		return;
	s.status.watch_lost = !s.life.leaving && !s.end;
	s.end = true;
}

static void wait_until_next(void)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC), next = s.period_us ? s.next_us : 0;
	bool soon = next && sy_processes_soon(&s.job.processes, now);
	int64_t left = sy_life_sleep_us(&s.life, next, now);
	unsigned woken = sy_wakeup_sleep(&s.wakeup, soon && left > SOON_US ? SOON_US : left);

	if (woken & SY_WOKEN_HEAD) /* first of all: it is a race */
		sy_processes_heads_ended(&s.job.processes);
	if (woken & SY_WOKEN_HEAD && s.job.cgroup.cpu_source) /* its group may go next */
		take_sample(SY_LOOK_NOW);
	if (soon && !woken)
		sy_processes_discover(&s.job.processes);
	if (woken & (SY_WOKEN_CONTROL | SY_WOKEN_WATCH)) /* before the parent's `end` */
		listen_to(s.child->control_fd);
	s.job.processes.heard++;
	if (woken & SY_WOKEN_PARENT)
		listen_to(s.child->parent_fd);
	s.end |= (woken & SY_WOKEN_END) != 0;
	if (s.life.look || woken & SY_WOKEN_WATCH || (s.life.until_us && !woken))
		look_who_is_left();
}

static void sample_if_due(void)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC), late;

	if (!s.period_us || now < s.next_us)
		return;
	take_sample(SY_LOOK_DUE);
	late = (now - s.next_us) / s.period_us;
	s.status.missed_deadlines += late;
	s.next_us += (late + 1) * s.period_us;
}

static void take_last_sample(void)
{
	s.end = true;
	sy_slow_ask(s.child->node->meters.slow, LAST_READING_US);
	take_sample(SY_LOOK_NOW);
	sy_job_split(&s.job, &s.status);
	s.status.max_memory_bytes = sy_own_max_memory_bytes();
	s.status.finished = true;
	publish(sy_now_us(CLOCK_MONOTONIC));
}

static void prepare(struct sy_child *child)
{
	s.child = child;
	s.wall = child->wall;
	s.job.kernel = child->kernel;
	s.status.cpu_source = s.status.memory_source = SY_SOURCE_PROCESSES;
	s.status.io_source = SY_SOURCE_PROCESSES;
	s.status.user_us = s.status.system_us = s.status.max_memory_bytes = SY_UNKNOWN;
	sy_sums_init(&s.status.sums);
	sy_cgroup_init(&s.job.cgroup);
	sy_cpu_guard_init(&s.job.guard, sy_now_us(CLOCK_MONOTONIC));
	sy_columns_init(&s.columns, &child->node->labels);
	sy_tcp_init(&s.tcp, sy_job_user(child->sampling), &child->shared->rtt_counts);
	sy_wakeup_signals(on_term);
	s.wakeup = (struct sy_wakeup){.parent_fd = child->parent_fd,
				      .control_fd = child->control_fd,
				      .watch_fd = child->watch_fd,
				      .watch = child->sampling->watch};
	if (sy_wakeup_open(&s.wakeup) < 0 ||
	    sy_processes_init(&s.job.processes, child->self, child->parent, sy_raise_file_limit(),
			      NULL) < 0)
		_exit(1);
	sy_step_groups_init(&s.job.steps, &s.job.processes, child->node->root,
			    child->sampling->watch);
	s.life.linger_us = child->sampling->linger_s * 1000000LL;
	if (child->sampling->parent)
		sy_processes_starter(&s.job.processes, child->sampling->parent, s.wakeup.events_fd);
	else
		sy_processes_keeper(&s.job.processes, child->sampling->watch);
	s.job.processes.marks = child->sampling->marks;
	s.job.processes.marks.owner =
	    child->sampling->has_owner ? child->sampling->owner_uid : geteuid();
}

static void begin(void)
{
	const struct sy_sampling *sampling = s.child->sampling;
	struct sy_sample_buffer *lines = &s.child->shared->lines;

	sy_in_kernel_keep(s.child->kernel);
	if (sy_rights_drop(NULL) < 0)
		_exit(1); /* never sample with more rights than needed: the record says why */
	if (s.child->command)
		sy_processes_root(&s.job.processes, s.child->parent);
	for (int i = 0; i < sampling->roots; i++)
		sy_job_root(&s.job, sampling->root[i], -1);
	set_rate(sampling->rate_hz);
	if (s.child->csv_fd >= 0)
		sy_sample_buffer_add(lines, sy_format_header(&s.child->node->labels, lines->text));
	take_sample(SY_LOOK_NOW);
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
