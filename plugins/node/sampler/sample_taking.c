#include "sampler/sample_taking.h"

#include "base/clock.h"
#include "base/rights.h"
#include "bpf/job.h"
#include "sampler/job_usage.h"

#include <poll.h>
#include <stdatomic.h>
#include <time.h>

void sy_sampler_publish(struct sy_sampler *s, int64_t now_us)
{
	unsigned next = !atomic_load(&s->child->shared->current);

	/* The clock of this process' CPU time is a system call: a value of a second ago will do. */
	if (now_us - s->cpu_at_us >= 1000000 || s->status.finished) {
		s->status.cpu_ns = sy_now_us(CLOCK_PROCESS_CPUTIME_ID) * 1000;
		s->cpu_at_us = now_us;
	}
	s->child->shared->status[next] = s->status;
	atomic_store(&s->child->shared->current, next);
}

void sy_sampler_write(struct sy_sampler *s, int64_t now_us)
{
	int64_t begun_us = sy_now_us(CLOCK_MONOTONIC), took_us;

	if (s->child->csv_fd < 0)
		return;
	s->status.lost += sy_sample_buffer_flush(&s->child->shared->lines, s->child->csv_fd, now_us,
						 &s->status.lost_errno);
	took_us = sy_now_us(CLOCK_MONOTONIC) - begun_us;
	if (took_us > SY_STALL_US && took_us > s->stalled_us)
		s->stalled_us = took_us;
}

/* Add the line to the sums and the file. `next_us`: when the next one may be. */
static void add_line(struct sy_sampler *s, int64_t now_us, int64_t next_us)
{
	struct sy_sample_buffer *lines = &s->child->shared->lines;

	if (s->child->csv_fd >= 0) {
		sy_sample_buffer_add(
		    lines, sy_format_line(&s->columns, &s->line, sy_sample_buffer_room(lines)));
		if (s->end || !s->period_us || sy_sample_buffer_is_due(lines, next_us))
			sy_sampler_write(s, now_us);
	}
	sy_sums_add(&s->status.sums, &s->line);
}

#define WAKE_US	  1000000 /* how long lines may wait */
#define MOST_US	  500000  /* with longer periods the child may as well wake up and read */
#define MARGIN_US 1000	  /* after a reading that is due when we wake up */

static int64_t wake_us(const struct sy_sampler *s)
{
	int64_t limit = sy_meters_max_period_us(&s->child->node->meters);
	int64_t wake = sy_bpf_patience_us(s->period_us);

	if (wake > WAKE_US)
		wake = WAKE_US;
	if (limit && wake > limit)
		wake = limit;
	return wake > s->period_us ? wake - wake % s->period_us : s->period_us;
}

/* A reading that was too late for its deadline, or lost, leaves a gap. */
static int64_t count_missed(const struct sy_sampler *s, int64_t elapsed_us)
{
	int64_t gap_us = elapsed_us - s->status.sums.last.cell[SY_ELAPSED];

	return gap_us > s->period_us ? (gap_us + s->period_us / 2) / s->period_us - 1 : 0;
}

static void set_line(struct sy_sampler *s, const struct sy_bpf_tick *tick)
{
	int64_t at_us = (int64_t)(tick->at_ns / 1000);

	s->line = s->status.sums.last;
	s->line.cell[SY_ELAPSED] = at_us - s->start_us;
	s->line.cell[SY_UNIX] = at_us + s->ticking.wall_us;
	s->line.cell[SY_RTT] = SY_UNKNOWN;
	sy_job_set_tick(&s->job, tick, &s->line, &s->status);
	s->status.missed_deadlines += count_missed(s, s->line.cell[SY_ELAPSED]);
	s->ticking.last_us = at_us;
}

static void write_tick(void *context, const struct sy_bpf_tick *tick)
{
	struct sy_sampler *s = context;

	if (s->ticking.is_waiting) {
		set_line(s, &s->ticking.tick);
		add_line(s, 0, 0);
	}
	s->ticking.tick = *tick;
	s->ticking.is_waiting = true;
}

/* The last tick gets the values that are read now. */
static void finish_ticks(struct sy_sampler *s, int64_t now_us)
{
	set_line(s, &s->ticking.tick);
	s->ticking.is_waiting = false;
	sy_node_read(s->child->node, now_us, false, &s->line);
	sy_job_read_with_ticks(&s->job, &s->line, &s->status);
	s->line.cell[SY_RTT] = sy_tcp_read(&s->tcp, &s->job.processes, now_us, false);
	s->status.tcp = s->tcp.status;
	add_line(s, now_us, now_us + WAKE_US);
	sy_meters_report(&s->child->node->meters, now_us, false, s->status.meter,
			 s->child->shared->meter_reason);
	sy_kernel_count_report(s->child->kernel, &s->status);
	sy_sampler_publish(s, now_us);
}

static bool write_ticks(struct sy_sampler *s)
{
	int64_t now_us = sy_now_us(CLOCK_MONOTONIC);
	bool some;

	s->ticking.wall_us = sy_wall_us(&s->wall) - now_us;
	s->status.clock_steps = s->wall.steps;
	s->status.clock_step_us = s->wall.step_us;
	(void)sy_bpf_read_ticks(&s->child->kernel->bpf, write_tick, s);
	some = s->ticking.is_waiting;
	if (some)
		finish_ticks(s, now_us);
	return some;
}

/* Write the kernel's samples: true when it continues. */
static bool continue_kernel_samples(struct sy_sampler *s)
{
	int64_t margin_us = s->period_us / 4 < MARGIN_US ? s->period_us / 4 : MARGIN_US;

	if (!s->ticking.on || !write_ticks(s) || !sy_job_is_counted_by_kernel(&s->job))
		return false;
	s->next_us = s->ticking.last_us + wake_us(s) + margin_us;
	return true;
}

/* Write the kernel's samples and stop it. */
static void stop_kernel_samples(struct sy_sampler *s)
{
	if (!s->ticking.on)
		return;
	(void)sy_bpf_set_ticks(&s->child->kernel->bpf, 0);
	s->ticking.on = false;
	(void)write_ticks(s);
}

/* Let the kernel take samples, where it can. */
static void start_kernel_samples(struct sy_sampler *s)
{
	struct sy_bpf *bpf = &s->child->kernel->bpf;

	if (s->end || !s->period_us || s->period_us > MOST_US || !bpf->ticks ||
	    !sy_job_is_counted_by_kernel(&s->job) || sy_bpf_set_ticks(bpf, s->period_us) < 0)
		return;
	s->ticking.on = true;
	s->next_us = sy_now_us(CLOCK_MONOTONIC) + wake_us(s);
}

/* Round-trip times, into the line. */
static void read_tcp(struct sy_sampler *s, int64_t now_us, bool now)
{
	if (!s->period_us)
		return;
	s->line.cell[SY_RTT] = sy_tcp_read(&s->tcp, &s->job.processes, now_us, now);
	s->status.tcp = s->tcp.status;
}

/* While the kernel counts, only owners of sockets are looked up in other processes; where the
 * cgroup shows them, too, that right is not needed. */
static void drop_unneeded_rights(struct sy_sampler *s)
{
	if (s->rights_settled || !s->job.by_kernel || (s->tcp.group_fd < 0 && s->period_us))
		return;
	(void)sy_rights_drop_ptrace();
	s->rights_settled = true;
}

/* Steps announce themselves as they begin; tasks of a PBS job do not. */
static bool may_have_begun(const struct sy_child *child)
{
	struct pollfd messages = {child->control_fd, POLLIN, 0};

	return child->sampling->parent || poll(&messages, 1, 0) > 0;
}

/* On a busy node, or with a record folder that does not answer, the first sample comes after the
 * job's begin: then elapsed_s begins at the sampler's launch. */
static void start_clock(struct sy_sampler *s, int64_t now)
{
	int64_t launched_us = s->child->sampling->launched_us;

	s->start_us = now;
	if (!launched_us || !may_have_begun(s->child))
		return;
	s->start_us = launched_us;
	if (now - launched_us > SY_STALL_US)
		s->status.late_us = now - launched_us;
}

void sy_sampler_sample(struct sy_sampler *s, enum sy_reading reading)
{
	bool first = s->status.sums.samples == 0;
	int64_t now;

	stop_kernel_samples(s);
	now = sy_now_us(CLOCK_MONOTONIC);
	sy_line_clear(&s->line);
	if (first)
		start_clock(s, now);
	s->line.cell[SY_UNIX] = first ? sy_wall_first_us(&s->wall) : sy_wall_us(&s->wall);
	s->status.clock_steps = s->wall.steps;
	s->status.clock_step_us = s->wall.step_us;
	s->line.cell[SY_ELAPSED] = now - s->start_us;
	/* The node's counters around the job's: a job never has more than its node. */
	if (!s->end)
		sy_node_read(s->child->node, now, first, &s->line);
	sy_job_read(&s->job, s->end ? SY_READING_LAST : reading, &s->line, &s->status);
	if (reading != SY_READING_DUE)
		sy_job_read_charged_peak(&s->job, &s->status);
	s->memory_us = now + SY_MEMORY_PERIOD_US;
	read_tcp(s, now, first || s->end);
	if (s->end) {
		sy_node_read(s->child->node, now, true, &s->line);
		s->status.stolen_us = sy_node_stolen_us(s->child->node);
	}
	add_line(s, now, now + s->period_us);
	sy_meters_report(&s->child->node->meters, now, s->end, s->status.meter,
			 s->child->shared->meter_reason);
	sy_sampler_publish(s, now);
	drop_unneeded_rights(s);
	start_kernel_samples(s);
}

void sy_sampler_due(struct sy_sampler *s, int64_t now_us)
{
	int64_t late;

	if (continue_kernel_samples(s))
		return;
	sy_sampler_sample(s, SY_READING_DUE);
	if (s->ticking.on) /* from now on */
		return;
	late = (now_us - s->next_us) / s->period_us;
	s->status.missed_deadlines += late;
	s->next_us += (late + 1) * s->period_us;
}

int64_t sy_sampler_next_us(const struct sy_sampler *s)
{
	if (s->period_us > SY_MEMORY_PERIOD_US && s->job.cgroup.memory_source != SY_SOURCE_NONE &&
	    s->memory_us < s->next_us)
		return s->memory_us;
	return s->period_us ? s->next_us : 0;
}

void sy_sampler_memory(struct sy_sampler *s, int64_t now_us)
{
	sy_job_read_memory_between(&s->job, &s->status);
	s->memory_us = now_us + SY_MEMORY_PERIOD_US;
	sy_sampler_publish(s, now_us);
}

void sy_sampler_rate(struct sy_sampler *s, double rate_hz)
{
	int64_t limit = sy_meters_max_period_us(&s->child->node->meters);

	stop_kernel_samples(s);
	s->status.rate_hz = rate_hz;
	s->period_us = rate_hz > 0 ? (int64_t)(1e6 / rate_hz + 0.5) : 0;
	if (s->period_us && limit && limit < s->period_us)
		s->period_us = limit;
	s->job.period_us = s->period_us;
	s->next_us = sy_now_us(CLOCK_MONOTONIC) + s->period_us;
}
