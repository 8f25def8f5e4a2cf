#include "sampler/ticking.h"

#include "base/clock.h"
#include "bpf/ticks.h"
#include "sampler/counted.h"
#include "sampler/samples.h"

#include <time.h>

#define WAKE_US	  1000000 /* how long lines may wait */
#define MOST_US	  500000  /* with longer periods whoever wakes up for it may as well read */
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

/* A reading that came too late for its deadline, or was lost, leaves a gap. */
static int64_t missed(const struct sy_sampler *s, int64_t elapsed_us)
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
	s->status.missed_deadlines += missed(s, s->line.cell[SY_ELAPSED]);
	s->ticking.last_us = at_us;
}

static void take(void *context, const struct sy_bpf_tick *tick)
{
	struct sy_sampler *s = context;

	if (s->ticking.held) {
		set_line(s, &s->ticking.tick);
		sy_sampler_line(s, 0, 0);
	}
	s->ticking.tick = *tick;
	s->ticking.held = true;
}

/* The last one has what is read now. */
static void finish(struct sy_sampler *s, int64_t now_us)
{
	set_line(s, &s->ticking.tick);
	s->ticking.held = false;
	sy_node_read(s->child->node, now_us, false, &s->line);
	sy_job_read_meanwhile(&s->job, &s->line, &s->status);
	sy_sampler_tcp(s, now_us, false);
	sy_sampler_line(s, now_us, now_us + WAKE_US);
	sy_meters_tell(&s->child->node->meters, now_us, false, s->status.wraps, s->status.meter_us,
		       s->child->shared->meter_why);
	sy_in_kernel_tell(s->child->kernel, &s->status);
	sy_sampler_publish(s, now_us);
}

static bool take_all(struct sy_sampler *s)
{
	int64_t now_us = sy_now_us(CLOCK_MONOTONIC);
	bool some;

	s->ticking.wall_us = sy_wall_us(&s->wall) - now_us;
	s->status.clock_steps = s->wall.steps;
	s->status.clock_step_us = s->wall.step_us;
	(void)sy_bpf_take_ticks(&s->child->kernel->bpf, take, s);
	some = s->ticking.held;
	if (some)
		finish(s, now_us);
	return some;
}

bool sy_ticking_take(struct sy_sampler *s)
{
	int64_t margin_us = s->period_us / 4 < MARGIN_US ? s->period_us / 4 : MARGIN_US;

	if (!s->ticking.on || !take_all(s) || !sy_job_stays_counted(&s->job))
		return false;
	s->next_us = s->ticking.last_us + wake_us(s) + margin_us;
	return true;
}

void sy_ticking_stop(struct sy_sampler *s)
{
	if (!s->ticking.on)
		return;
	(void)sy_bpf_set_ticks(&s->child->kernel->bpf, 0);
	s->ticking.on = false;
	(void)take_all(s);
}

void sy_ticking_start(struct sy_sampler *s)
{
	struct sy_bpf *bpf = &s->child->kernel->bpf;

	if (s->end || !s->period_us || s->period_us > MOST_US || !bpf->ticks ||
	    !sy_job_stays_counted(&s->job) || sy_bpf_set_ticks(bpf, s->period_us) < 0)
		return;
	s->ticking.on = true;
	s->next_us = sy_now_us(CLOCK_MONOTONIC) + wake_us(s);
}
