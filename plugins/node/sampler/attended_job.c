/* Attends a job that others start and end: they send its steps, its cgroup and its end to the
 * control socket, which the child listens to. The parent waits until the child has ended. */
#include "sampler/sampler.h"

#include "bpf/job.h"
#include "counters/child_processes.h"
#include "sampler/parent.h"

#include <signal.h>
#include <sys/resource.h>

#define NOTES_MS 200 /* messages in a row make one new record */

static struct sy_parent p;

static void on_signal(struct sy_parent *parent, const struct signalfd_siginfo *info)
{
	parent->end |= info->ssi_signo == SIGTERM || info->ssi_signo == SIGINT;
}

int sy_attend_job(struct sy_sampling *sampling)
{
	p.sampling = sampling;
	p.notes_ms = NOTES_MS;
	p.ends_with_child = true;
	p.signal_fd = sy_open_signals();
	if (p.signal_fd < 0)
		return SY_SAMPLE_UNABLE;
	if (!sy_parent_set_up(&p)) {
		sy_parent_close_record(&p);
		return SY_SAMPLE_UNABLE;
	}
	sy_parent_start_child(&p);
	/* The first sample does not wait for the probe, and the job, which starts now, has
	 * precedence. */
	(void)setpriority(PRIO_PROCESS, 0, 10);
	sy_parent_probe(&p);
	sy_bpf_reap(&p.kernel.bpf);
	sy_parent_write_first_record(&p);
	p.end = !sy_parent_has_child(&p); /* nobody would listen for the job's end */
	sy_parent_wait(&p, on_signal);
	sy_parent_finish(&p, NULL);
	return 0;
}
