#include "sampler/samples.h"

#include "base/clock.h"
#include "base/rights.h"
#include "sampler/ticking.h"

#include <time.h>

void sy_sampler_publish(struct sy_sampler *s, int64_t now_us)
{
	unsigned next = !atomic_load(&s->child->shared->current);

	/* A clock of one's own CPU time is a system call: a value of a second ago will do. */
	if (now_us - s->cpu_at_us >= 1000000 || s->status.finished) {
		s->status.cpu_ns = sy_now_us(CLOCK_PROCESS_CPUTIME_ID) * 1000;
		s->cpu_at_us = now_us;
	}
	s->child->shared->status[next] = s->status;
	atomic_store(&s->child->shared->current, next);
}

void sy_sampler_write(struct sy_sampler *s, int64_t now_us)
{
	if (s->child->csv_fd >= 0)
		s->status.lost += sy_sample_buffer_flush(&s->child->shared->lines, s->child->csv_fd,
							 now_us, &s->status.lost_errno);
}

void sy_sampler_line(struct sy_sampler *s, int64_t now_us, int64_t next_us)
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

void sy_sampler_tcp(struct sy_sampler *s, int64_t now_us, bool now)
{
	if (!s->period_us)
		return;
	s->line.cell[SY_RTT] = sy_tcp_read(&s->tcp, &s->job.processes, now_us, now);
	s->status.tcp = s->tcp.status;
}

/* Where the kernel counts, only the owners of sockets are looked for in processes; where a cgroup
 * tells them, too, nobody is looked into any more. */
static void drop_what_is_not_needed(struct sy_sampler *s)
{
	if (s->rights_settled || !s->job.counted || (s->tcp.group_fd < 0 && s->period_us))
		return;
	(void)sy_rights_drop_ptrace();
	s->rights_settled = true;
}

void sy_sampler_sample(struct sy_sampler *s, enum sy_look look)
{
	bool first = s->status.sums.samples == 0;
	int64_t now;

	sy_ticking_stop(s);
	now = sy_now_us(CLOCK_MONOTONIC);
	sy_line_clear(&s->line);
	if (first)
		s->start_us = now;
	s->line.cell[SY_UNIX] = first ? sy_wall_first_us(&s->wall) : sy_wall_us(&s->wall);
	s->status.clock_steps = s->wall.steps;
	s->status.clock_step_us = s->wall.step_us;
	s->line.cell[SY_ELAPSED] = now - s->start_us;
	/* The node's around the job's: what a job has is never more than its node's. */
	if (!s->end)
		sy_node_read(s->child->node, now, first, &s->line);
	sy_job_read(&s->job, s->end ? SY_LOOK_LAST : look, &s->line, &s->status);
	sy_sampler_tcp(s, now, first || s->end);
	if (s->end)
		sy_node_read(s->child->node, now, true, &s->line);
	sy_sampler_line(s, now, now + s->period_us);
	sy_meters_tell(&s->child->node->meters, now, s->end, s->status.wraps, s->status.meter_us,
		       s->child->shared->meter_why);
	sy_sampler_publish(s, now);
	drop_what_is_not_needed(s);
	sy_ticking_start(s);
}

void sy_sampler_due(struct sy_sampler *s, int64_t now_us)
{
	int64_t late;

	if (sy_ticking_take(s))
		return;
	sy_sampler_sample(s, SY_LOOK_DUE);
	if (s->ticking.on) /* from now on */
		return;
	late = (now_us - s->next_us) / s->period_us;
	s->status.missed_deadlines += late;
	s->next_us += (late + 1) * s->period_us;
}

void sy_sampler_rate(struct sy_sampler *s, double rate_hz)
{
	int64_t limit = sy_meters_max_period_us(&s->child->node->meters);

	sy_ticking_stop(s);
	s->status.rate_hz = rate_hz;
	s->period_us = rate_hz > 0 ? (int64_t)(1e6 / rate_hz + 0.5) : 0;
	if (s->period_us && limit && limit < s->period_us)
		s->period_us = limit;
	s->job.period_us = s->period_us;
	s->next_us = sy_now_us(CLOCK_MONOTONIC) + s->period_us;
}
