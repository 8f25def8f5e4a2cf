/* Samples at absolute deadlines, messages in between. No allocation. */
#include "sampler/child_state.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/rights.h"
#include "counters/process_members.h"
#include "sampler/memory_footprint.h"
#include "sampler/messages.h"
#include "sampler/sample_taking.h"

#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOON_US 50000 /* how often tasks that may begin at any moment are looked for */

static struct sy_sampler s;

#define SHRINK_US 2000000 /* after a message, whose pages are not needed again */

static int64_t shrink_at_us; /* 0: nothing to give back */

static volatile sig_atomic_t terminated; /* by SIGTERM */

static void on_term(int number)
{
	(void)number;
	terminated = 1;
}

/* The watched process has ended. As long as a process of the job runs, so does the sampler. */
static void look_for_survivors(void)
{
	if (s.job.processes.starter.pid && !s.life.leaving && !s.life.until_us)
		sy_sampler_sample(&s, SY_READING_NOW); /* some may be seen only now */
	if (sy_lifetime_continues(&s.life, &s.job.processes, &s.wakeup, sy_now_us(CLOCK_MONOTONIC)))
		return;
	s.status.watch_lost = !s.life.leaving && !s.end;
	s.end = true;
}

static void wait_until_next(void)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC), next = sy_sampler_next_us(&s);
	bool soon = next && sy_processes_expect_task(&s.job.processes, now);
	int64_t remaining = sy_lifetime_sleep_us(&s.life, next, now);
	unsigned woken =
	    sy_wakeup_sleep(&s.wakeup, soon && remaining > SOON_US ? SOON_US : remaining);

	if (soon && !woken)
		sy_processes_discover(&s.job.processes);
	if (woken & SY_WOKEN_TASK) /* first of all: it is a race */
		sy_processes_read_ended_tasks(&s.job.processes);
	if (woken & SY_WOKEN_TASK && s.job.cgroup.cpu_source) /* its group may go next */
		sy_sampler_sample(&s, SY_READING_NOW);
	if (woken & (SY_WOKEN_CONTROL | SY_WOKEN_WATCH)) /* before the parent's `end` */
		sy_sampler_listen(&s, s.child->control_fd);
	if (woken & SY_WOKEN_CONTROL)
		shrink_at_us = now + SHRINK_US;
	s.job.processes.messages_read++;
	if (woken & SY_WOKEN_PARENT)
		sy_sampler_listen(&s, s.child->parent_fd);
	s.end |= (woken & SY_WOKEN_END) != 0;
	if (s.life.check_survivors || woken & SY_WOKEN_WATCH || (s.life.until_us && !woken))
		look_for_survivors();
}

static void sample_if_due(void)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC);

	if (s.period_us && now >= s.next_us)
		sy_sampler_due(&s, now);
	else if (s.period_us && now >= sy_sampler_next_us(&s))
		sy_sampler_memory(&s, now);
	if (shrink_at_us && now >= shrink_at_us) {
		shrink_at_us = 0;
		sy_shrink();
	}
}

static void take_last_sample(void)
{
	s.end = true;
	sy_processes_read_ended_tasks(&s.job.processes);
	/* Another sampler of this job that starts now does not reach this one. */
	(void)shutdown(s.child->control_fd, SHUT_RD);
	sy_slow_request(s.child->node->meters.slow, SY_LAST_READING_US);
	sy_sampler_sample(&s, SY_READING_NOW);
	sy_job_split(&s.job, &s.status);
	s.status.max_memory_bytes = sy_own_max_memory_bytes();
	s.status.finished = true;
	sy_sampler_publish(&s, sy_now_us(CLOCK_MONOTONIC));
}

static int64_t exclusive_from_start(const struct sy_sampling *sampling)
{
	const json_t *exclusive = json_object_get(sampling->notes.job, "exclusive");

	return json_is_boolean(exclusive) ? json_is_true(exclusive) : SY_UNKNOWN;
}

static void prepare(struct sy_child *child)
{
	s.child = child;
	s.wall = child->wall;
	s.job.kernel = child->kernel;
	s.job.counted_us = SY_UNKNOWN;
	s.status.cpu_source = s.status.memory_source = SY_SOURCE_PROCESSES;
	s.status.io_source = SY_SOURCE_PROCESSES;
	s.status.user_us = s.status.system_us = s.status.max_memory_bytes = SY_UNKNOWN;
	s.status.charged_peak_bytes = SY_UNKNOWN;
	s.status.stolen_us = s.status.gap_us = SY_UNKNOWN;
	s.status.by_marks = child->sampling->parent != 0;
	s.status.opening_us = child->opening_us;
	s.status.minor_faults = s.status.major_faults = SY_UNKNOWN;
	s.status.exclusive = exclusive_from_start(child->sampling);
	sy_sums_init(&s.status.sums);
	sy_cgroup_init(&s.job.cgroup);
	sy_columns_init(&s.columns, &child->node->labels);
	sy_tcp_init(&s.tcp, sy_job_user(child->sampling), &child->shared->tcp_counts);
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
		sy_processes_use_starter(&s.job.processes, child->sampling->parent,
					 s.wakeup.events_fd);
	else
		sy_processes_use_extern_daemon(&s.job.processes, child->sampling->watch);
	s.job.processes.marks = child->sampling->marks;
	s.job.processes.marks.owner =
	    child->sampling->has_owner ? child->sampling->owner_uid : geteuid();
}

/* A virtual machine, as its host has it, or another program that runs already: to its end. */
static void follow(pid_t pid)
{
	sy_processes_follow(&s.job.processes, pid);
	sy_lifetime_add_root(&s.life, pid);
	s.life.leaving = true;
	sy_wakeup_watch(&s.wakeup, pid);
}

static void begin_sampling(void)
{
	const struct sy_sampling *sampling = s.child->sampling;
	struct sy_sample_buffer *lines = &s.child->shared->lines;

	sy_kernel_count_hold(s.child->kernel);
	if (sy_rights_drop(sy_kernel_count_needs_right(s.child->kernel), NULL) < 0)
		_exit(1); /* never sample with more rights than needed: the record has the reason */
	if (s.child->command) {
		s.child->kernel->named = true; /* by the parent, at the command's start */
		sy_processes_root(&s.job.processes, s.child->parent);
	}
	for (int i = 0; i < sampling->roots; i++)
		sy_job_add_root(&s.job, sampling->root[i], -1, 0);
	if (sampling->process)
		follow(sampling->process);
	sy_sampler_rate(&s, sampling->rate_hz);
	if (s.child->csv_fd >= 0)
		sy_sample_buffer_add(lines, sy_format_header(&s.child->node->labels, lines->text));
	sy_sampler_sample(&s, SY_READING_NOW);
	sy_sampler_publish(&s, sy_now_us(CLOCK_MONOTONIC));
	(void)send(s.child->parent_fd, "r", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	sy_shrink();
	shrink_at_us =
	    sy_now_us(CLOCK_MONOTONIC) + SHRINK_US; /* what the timer's start has touched */
}

void sy_child_run(struct sy_child *child)
{
	int64_t stalled_us = 0;

	prepare(child);
	begin_sampling();
	while (!s.end && !terminated) {
		/* That of the turn before: the job's end may have waited behind it. */
		stalled_us = s.stalled_us;
		s.stalled_us = 0;
		wait_until_next();
		if (!s.end && !terminated)
			sample_if_due();
	}
	s.status.stalled_us = stalled_us > s.stalled_us ? stalled_us : s.stalled_us;
	take_last_sample();
	_exit(0);
}
