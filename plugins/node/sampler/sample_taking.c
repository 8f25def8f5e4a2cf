#include "sampler/sample_taking.h"

#include "base/clock.h"
#include "base/rights.h"
#include "sampler/job_usage.h"
#include "sampler/kernel_timer_samples.h"
#include "sampler/sample_output.h"

#include <poll.h>
#include <time.h>

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

	sy_kernel_samples_stop(s);
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
	sy_sampler_add_line(s, now, now + s->period_us);
	sy_meters_report(&s->child->node->meters, now, s->end, s->status.meter,
			 s->child->shared->meter_reason);
	sy_sampler_publish(s, now);
	drop_unneeded_rights(s);
	sy_kernel_samples_start(s);
}

void sy_sampler_due(struct sy_sampler *s, int64_t now_us)
{
	int64_t late;

	if (sy_kernel_samples_continue(s))
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

	sy_kernel_samples_stop(s);
	s->status.rate_hz = rate_hz;
	s->period_us = rate_hz > 0 ? (int64_t)(1e6 / rate_hz + 0.5) : 0;
	if (s->period_us && limit && limit < s->period_us)
		s->period_us = limit;
	s->job.period_us = s->period_us;
	s->next_us = sy_now_us(CLOCK_MONOTONIC) + s->period_us;
}
