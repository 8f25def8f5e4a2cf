#include "bpf/job.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rights.h"
#include "bpf/pins.h"
#include "bpf/system_call.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BRIEF_TRIES 4

static const char *const pins[SY_BPF_PINS] = {
    [SY_BPF_PIN_FREE] = "on_free",	  [SY_BPF_PIN_EXIT] = "on_exit",
    [SY_BPF_PIN_EXEC] = "on_exec",	  [SY_BPF_PIN_NEW] = "on_new",
    [SY_BPF_PIN_REQUESTS] = "requests",	  [SY_BPF_PIN_ADOPT] = "adopt",
    [SY_BPF_PIN_JOIN] = "join",		  [SY_BPF_PIN_READ_JOB] = "read_job",
    [SY_BPF_PIN_SET_TICKS] = "set_ticks", [SY_BPF_PIN_ADOPT_GROUP] = "adopt_group",
    [SY_BPF_PIN_GROUPS] = "groups",	  [SY_BPF_PIN_UNREAD] = "unread",
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void sy_bpf_close(struct sy_bpf *bpf)
{
	sy_bpf_reap(bpf);
	if (bpf->mapped)
		(void)munmap(bpf->mapped, sizeof(*bpf->mapped));
	for (int i = 0; i < SY_BPF_PINS; i++)
		close_fd(&bpf->pin[i]);
	close_fd(&bpf->map);
	close_fd(&bpf->folder);
	bpf->mapped = NULL;
	bpf->job = 0;
}

static int open_pinned(struct sy_bpf *bpf, const char *base)
{
	bpf->folder = sy_bpf_use(base);
	for (int i = 0; i < SY_BPF_PINS; i++) {
		bpf->pin[i] = sy_bpf_open(base, pins[i]);
		if (bpf->pin[i] < 0)
			return -1;
	}
	return 0;
}

/* Without one its sampler wakes up for every sample. */
static void make_ticker(struct sy_bpf *bpf, const char *base)
{
	cleanup_close int tickers = sy_bpf_open(base, "tickers");
	struct sy_bpf_ticker off = {.period_ns = 0};
	int result =
	    tickers < 0 ? tickers : sy_bpf_update(tickers, &bpf->job, &off, SY_BPF_NOEXIST);

	bpf->ticks = result == 0 || result == -EEXIST;
}

static int begin_locked(struct sy_bpf *bpf, const char *base, uint64_t number, struct sy_error *err)
{
	int result;

	if (open_pinned(bpf, base) < 0)
		return sy_fail(err, "nothing of this release is pinned in %s", base);
	bpf->job =
	    number ? number
		   : (uint64_t)sy_now_ns(CLOCK_MONOTONIC); /* no two are the same, under the lock */
	result = sy_bpf_open_maps(bpf, base)
		     ? 0
		     : sy_bpf_make_maps(bpf, base, (uint64_t)sy_now_ns(CLOCK_MONOTONIC));
	if (result == 0) {
		make_ticker(bpf, base);
		return 0;
	}
	sy_bpf_forget(base, bpf->job);
	return sy_fail_errno(err, -result, "cannot make the job's maps");
}

uint64_t sy_bpf_hash_job(const char *control, unsigned long long made_ns)
{
	return sy_hash(sy_hash(SY_HASH, control, strlen(control)), &made_ns, sizeof(made_ns));
}

int sy_bpf_begin(struct sy_bpf *bpf, const char *base, uint64_t number, enum sy_bpf_kind self,
		 int patience_ms, struct sy_error *err)
{
	cleanup_close int lock = -1;

	*bpf = (struct sy_bpf){
	    .base = base, .map = -1, .folder = -1, .processors = sysconf(_SC_NPROCESSORS_CONF)};
	for (int i = 0; i < SY_BPF_PINS; i++)
		bpf->pin[i] = -1;
	lock = sy_bpf_lock(base, false, patience_ms, err);
	if (lock < 0)
		return lock;
	if (begin_locked(bpf, base, number, err) == 0 && sy_bpf_join(bpf, self, err) == 0)
		return 0;
	sy_bpf_close(bpf);
	return -1;
}

/* A task that is at its end, on a processor that others use, too, may take a while. */
static int read_until_settled(struct sy_bpf *bpf, enum sy_bpf_patience patience,
			      struct sy_bpf_answer *answer)
{
	/* Ends come late where all processors are taken: a storm at load 15. */
	static const int tries[] = {
	    [SY_BPF_BRIEF] = BRIEF_TRIES, [SY_BPF_SETTLED] = 300, [SY_BPF_LAST] = 4000};
	const struct timespec pause = {.tv_nsec = 1000000};
	bool last = patience == SY_BPF_LAST;
	int result = -ENOENT;

	for (int i = 0; i < tries[patience]; i++) {
		if (i >= BRIEF_TRIES)
			(void)nanosleep(&pause, NULL);
		*answer = (struct sy_bpf_answer){.job = bpf->job};
		result = sy_bpf_run(bpf->pin[SY_BPF_PIN_READ_JOB], answer, sizeof(*answer));
		/* One that had no place in the list is left out until it has ended for good. */
		if (result < 0 ||
		    (answer->settled && (!last || (!answer->unread && !answer->unlisted))))
			break;
	}
	return result;
}

int sy_bpf_read(struct sy_bpf *bpf, enum sy_bpf_patience patience, struct sy_bpf_answer *answer)
{
	int64_t period_us = bpf->period_us;
	int result;

	if (period_us) /* one at a time */
		(void)sy_bpf_set_ticks(bpf, 0);
	result = read_until_settled(bpf, patience, answer);
	if (period_us && patience != SY_BPF_LAST)
		(void)sy_bpf_set_ticks(bpf, period_us);
	return result;
}

int sy_bpf_end(struct sy_bpf *bpf)
{
	cleanup_close int lock = -1;
	int remaining;

	if (!bpf->job)
		return -1;
	/* Not with the lock held, for which a job's start may wait: each of three deletions waits
	 * for the kernel, 10 ms and more. */
	sy_bpf_forget(bpf->base, bpf->job);
	lock = sy_bpf_lock(bpf->base, false, SY_BPF_PATIENCE_MS, NULL);
	/* A process that keeps the lock for so long need not see to the end of the last job. */
	remaining = lock >= 0 ? sy_bpf_forget_dead(bpf->base) : sy_bpf_count_jobs(bpf->base);
	sy_bpf_close(bpf);
	return remaining;
}

int64_t sy_bpf_split_user(const struct sy_bpf_usage *used, int64_t cpu)
{
	double both = (double)used->user_ns + (double)used->system_ns;

	return both > 0 ? (int64_t)((double)cpu * (double)used->user_ns / both) : cpu;
}

int64_t sy_bpf_largest_bytes(const struct sy_bpf *bpf)
{
	uint64_t most = 0;

	for (int i = 0; bpf->mapped && i < SY_BPF_CPUS; i++)
		if (bpf->mapped->largest_pages[i] > most)
			most = bpf->mapped->largest_pages[i];
	return (int64_t)most * sysconf(_SC_PAGESIZE);
}

/* --- rights --- */

/* Only a refusal (EPERM) matters, not the answer. */
static int probe_right(const void *context)
{
	const struct sy_bpf *bpf = context;
	struct sy_bpf_requester first;

	return sy_bpf_next_key(bpf->pin[SY_BPF_PIN_REQUESTS], NULL, &first);
}

bool sy_bpf_needs_right(const struct sy_bpf *bpf)
{
	return sy_needs_rights(probe_right, bpf);
}

/* --- the timer in the kernel --- */

#define CLOCKS_APART_NS 1000000000 /* the scheduler's clock and the monotonic one, at most */

/* A sum is below 0 for a moment while a task that had used something before joins the job. */
bool sy_bpf_is_possible(const struct sy_bpf *bpf, const struct sy_bpf_usage *used, uint64_t at_ns)
{
	uint64_t most_ns = at_ns - bpf->mapped->since_ns + CLOCKS_APART_NS;

	return (int64_t)used->cpu_ns / bpf->processors <= (int64_t)most_ns;
}

int sy_bpf_set_ticks(struct sy_bpf *bpf, int64_t period_us)
{
	struct sy_bpf_ticking requested = {.job = bpf->job,
					   .period_ns = (uint64_t)period_us * 1000};
	int result = bpf->ticks
			 ? sy_bpf_run(bpf->pin[SY_BPF_PIN_SET_TICKS], &requested, sizeof(requested))
			 : -ENOTSUP;

	bpf->period_us = result < 0 ? 0 : period_us;
	return result;
}

/* The kernel may be about to write over the oldest one of a full ring. */
static bool is_lost(const volatile struct sy_bpf_job *job, uint64_t number)
{
	return job->ticks - number >= SY_BPF_TICKS;
}

int64_t sy_bpf_read_ticks(struct sy_bpf *bpf,
			  void (*note)(void *context, const struct sy_bpf_tick *tick),
			  void *context)
{
	uint64_t written, lost = 0;

	if (!bpf->mapped)
		return 0;
	written = __atomic_load_n(&bpf->mapped->ticks, __ATOMIC_ACQUIRE);
	if (bpf->taken < written && written - bpf->taken > SY_BPF_TICKS) {
		lost = written - SY_BPF_TICKS - bpf->taken;
		bpf->taken = written - SY_BPF_TICKS;
	}
	for (; bpf->taken < written; bpf->taken++) {
		struct sy_bpf_tick tick = bpf->mapped->tick[bpf->taken % SY_BPF_TICKS];

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (is_lost(bpf->mapped, bpf->taken) ||
		    !sy_bpf_is_possible(bpf, &tick.used, tick.at_ns))
			lost++;
		else
			note(context, &tick);
	}
	return lost < INT64_MAX ? (int64_t)lost : INT64_MAX;
}

int64_t sy_bpf_patience_us(int64_t period_us)
{
	return period_us * (SY_BPF_TICKS / 2);
}
