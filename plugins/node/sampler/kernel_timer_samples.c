#include "sampler/kernel_timer_samples.h"

#include "base/clock.h"
#include "bpf/job.h"
#include "sampler/sample_output.h"

#include <time.h>

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
		sy_sampler_add_line(s, 0, 0);
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
	sy_sampler_add_line(s, now_us, now_us + WAKE_US);
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

bool sy_kernel_samples_continue(struct sy_sampler *s)
{
	int64_t margin_us = s->period_us / 4 < MARGIN_US ? s->period_us / 4 : MARGIN_US;

	if (!s->ticking.on || !write_ticks(s) || !sy_job_is_counted_by_kernel(&s->job))
		return false;
	s->next_us = s->ticking.last_us + wake_us(s) + margin_us;
	return true;
}

void sy_kernel_samples_stop(struct sy_sampler *s)
{
	if (!s->ticking.on)
		return;
	(void)sy_bpf_set_ticks(&s->child->kernel->bpf, 0);
	s->ticking.on = false;
	(void)write_ticks(s);
}

void sy_kernel_samples_start(struct sy_sampler *s)
{
	struct sy_bpf *bpf = &s->child->kernel->bpf;

	if (s->end || !s->period_us || s->period_us > MOST_US || !bpf->ticks ||
	    !sy_job_is_counted_by_kernel(&s->job) || sy_bpf_set_ticks(bpf, s->period_us) < 0)
		return;
	s->ticking.on = true;
	s->next_us = sy_now_us(CLOCK_MONOTONIC) + wake_us(s);
}
