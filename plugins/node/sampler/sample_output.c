#include "sampler/sample_output.h"

#include "base/clock.h"

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

void sy_sampler_add_line(struct sy_sampler *s, int64_t now_us, int64_t next_us)
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
