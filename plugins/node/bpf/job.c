#include "bpf/job.h"

#include "base/clock.h"
#include "base/file.h"
#include "bpf/call.h"
#include "bpf/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define PASSES	      16 /* over all tasks, when more and more of the job's are found */
#define TRIES	      4
#define PATIENT_TRIES 300

static const char *const programs[SY_BPF_PROGRAMS] = {"on_free", "on_exit", "on_exec", "on_new"};

static void close_all(struct sy_bpf *bpf)
{
	int *const fds[] = {&bpf->program[0], &bpf->program[1], &bpf->program[2],
			    &bpf->program[3], &bpf->requests,	&bpf->adopt,
			    &bpf->read_job,   &bpf->read_tasks, &bpf->map};

	if (bpf->mapped)
		(void)munmap(bpf->mapped, sizeof(*bpf->mapped));
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
	bpf->mapped = NULL;
	bpf->job = 0;
}

static int open_pinned(struct sy_bpf *bpf, const char *base)
{
	bool all = true;

	for (int i = 0; i < SY_BPF_PROGRAMS; i++) {
		bpf->program[i] = sy_bpf_open(base, programs[i]);
		all &= bpf->program[i] >= 0;
	}
	bpf->requests = sy_bpf_open(base, "requests");
	bpf->adopt = sy_bpf_open(base, "adopt");
	bpf->read_tasks = sy_bpf_open(base, "read_tasks");
	bpf->read_job = sy_bpf_open(base, "read_job");
	bpf->walks = bpf->read_job >= 0;
	all &= bpf->requests >= 0 && bpf->adopt >= 0 && bpf->read_tasks >= 0;
	return all ? 0 : -1;
}

/* Put an own map of the job's into the pinned one of that name: its descriptor, or -errno. */
static int own_map(struct sy_bpf *bpf, const char *base, const char *name,
		   enum sy_bpf_map_type type, uint32_t value_size, uint32_t entries, uint32_t flags)
{
	cleanup_close int outer = sy_bpf_open(base, name);
	int inner, result;

	if (outer < 0)
		return outer;
	inner = sy_bpf_map_create(type, value_size, entries, flags, "sy_job");
	if (inner < 0)
		return inner;
	result = sy_bpf_update(outer, &bpf->job, &inner, SY_BPF_NOEXIST);
	if (result == 0)
		return inner;
	(void)close(inner);
	return result;
}

/* The jobs' map last: what is in there is counted. */
static int make_maps(struct sy_bpf *bpf, const char *base)
{
	cleanup_close int queue = own_map(bpf, base, "queues", SY_BPF_MAP_QUEUE,
					  sizeof(struct sy_bpf_listed), SY_BPF_LIST, 0);
	cleanup_close int list =
	    own_map(bpf, base, "lists", SY_BPF_MAP_ARRAY, sizeof(struct sy_bpf_list), 1, 0);
	const uint32_t zero = 0;
	struct sy_bpf_job begin = {.since_ns = bpf->job};
	void *mapped;

	if (queue < 0 || list < 0)
		return queue < 0 ? queue : list;
	bpf->map = own_map(bpf, base, "jobs", SY_BPF_MAP_ARRAY, sizeof(struct sy_bpf_job), 1,
			   SY_BPF_MMAPABLE);
	if (bpf->map < 0)
		return bpf->map;
	(void)sy_bpf_update(bpf->map, &zero, &begin, 0);
	mapped = mmap(NULL, sizeof(begin), PROT_READ, MAP_SHARED, bpf->map, 0);
	bpf->mapped = mapped == MAP_FAILED ? NULL : mapped;
	return bpf->mapped ? 0 : -errno;
}

/* A job's number is the moment of its begin: no two have the same, for there is a lock. */
static int begin_locked(struct sy_bpf *bpf, const char *base, struct sy_error *err)
{
	struct timespec now;
	int result;

	if (open_pinned(bpf, base) < 0)
		return sy_fail(err, "nothing of this release is pinned in %s", base);
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	bpf->job = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
	result = make_maps(bpf, base);
	return result < 0 ? sy_fail_errno(err, -result, "cannot make the job's maps") : 0;
}

int sy_bpf_begin(struct sy_bpf *bpf, const char *base, struct sy_error *err)
{
	cleanup_close int lock = -1;

	*bpf = (struct sy_bpf){.base = base,
			       .program = {-1, -1, -1, -1},
			       .requests = -1,
			       .adopt = -1,
			       .read_job = -1,
			       .read_tasks = -1,
			       .map = -1};
	lock = sy_bpf_lock(base, false, err);
	if (lock < 0)
		return -1;
	if (begin_locked(bpf, base, err) == 0 && sy_bpf_keep(bpf, err) == 0)
		return 0;
	close_all(bpf);
	(void)sy_bpf_sweep(base);
	return -1;
}

static void add(struct sy_bpf_usage *sum, const struct sy_bpf_usage *more)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)more;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

/* As our own namespace of process ids has it. */
static int myself(struct sy_bpf_asker *asker)
{
	struct stat info;

	if (stat("/proc/self/ns/pid", &info) < 0)
		return -1;
	*asker = (struct sy_bpf_asker){(uint32_t)getpid(), (uint32_t)info.st_ino};
	return 0;
}

/* Every task passes by; what the program writes of them is summed up: of how many, or -errno. */
static int pass(int link, struct sy_bpf_usage *sum)
{
	cleanup_close int tasks = sy_bpf_iterate(link);
	struct sy_bpf_usage one;
	ssize_t got;
	int count = 0;

	if (tasks < 0)
		return tasks;
	while ((got = read(tasks, &one, sizeof(one))) != 0) {
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (got == (ssize_t)sizeof(one) && sum) {
			add(sum, &one);
			count++;
		}
	}
	return count;
}

static int ask(const struct sy_bpf *bpf, const struct sy_bpf_asker *asker,
	       struct sy_bpf_request *request)
{
	uint64_t before;
	int result = sy_bpf_update(bpf->requests, asker, request, 0);

	for (int i = 0; result == 0 && i < PASSES; i++) {
		before = request->added;
		result = pass(bpf->adopt, NULL);
		if (result == 0)
			result = sy_bpf_lookup(bpf->requests, asker, request);
		if (request->added == before)
			break;
	}
	(void)sy_bpf_delete(bpf->requests, asker);
	return result;
}

int sy_bpf_adopt(struct sy_bpf *bpf, pid_t pid, enum sy_bpf_kind kind, int64_t faults,
		 struct sy_error *err)
{
	struct sy_bpf_request request = {
	    .job = bpf->job, .pid = (uint32_t)pid, .kind = kind, .faults = (uint64_t)faults};
	struct sy_bpf_asker asker;
	int result;

	if (myself(&asker) < 0)
		return sy_fail_errno(err, errno, "/proc/self/ns/pid");
	result = ask(bpf, &asker, &request);
	return result < 0
		   ? sy_fail_errno(err, -result, "the kernel does not take process %d", (int)pid)
		   : 0;
}

int sy_bpf_keep(struct sy_bpf *bpf, struct sy_error *err)
{
	return sy_bpf_adopt(bpf, 0, SY_BPF_KEEPER, -1, err);
}

/* Where there is no read_job: all tasks of the node are gone through. One that was waited for is in
 * no list any more, and is missed until it has ended for good: some ms. */
static int read_by_passing(struct sy_bpf *bpf, struct sy_bpf_answer *answer)
{
	const volatile struct sy_bpf_job *job = bpf->mapped;
	struct sy_bpf_request request = {.job = bpf->job};
	struct sy_bpf_asker asker;
	uint64_t done = job->ending_done;
	int result;

	answer->used = bpf->mapped->ended;
	if (myself(&asker) < 0)
		return -errno;
	result = sy_bpf_update(bpf->requests, &asker, &request, 0);
	if (result == 0)
		result = pass(bpf->read_tasks, &answer->used);
	(void)sy_bpf_delete(bpf->requests, &asker);
	answer->tasks = job->tasks;
	answer->lost = job->lost;
	answer->missed = job->missed;
	answer->late = job->late;
	answer->unread = answer->tasks - (result < 0 ? 0U : (unsigned)result);
	answer->settled = job->ending_begun == done;
	return result < 0 ? result : 0;
}

/* A task that is at its end, on a processor that others use, too, may take a while. */
int sy_bpf_read(struct sy_bpf *bpf, bool last, struct sy_bpf_answer *answer)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int result = -ENOENT;

	for (int i = 0; i < (last ? PATIENT_TRIES : TRIES); i++) {
		if (i >= TRIES)
			(void)nanosleep(&pause, NULL);
		*answer = (struct sy_bpf_answer){.job = bpf->job};
		result = bpf->walks ? sy_bpf_run(bpf->read_job, answer, sizeof(*answer))
				    : read_by_passing(bpf, answer);
		if (result < 0 || (answer->settled && (!last || !answer->unread)))
			break;
	}
	return result;
}

static void forget(const struct sy_bpf *bpf)
{
	static const char *const maps[] = {"jobs", "queues", "lists"};

	for (size_t i = 0; i < 3; i++) {
		cleanup_close int map = sy_bpf_open(bpf->base, maps[i]);

		if (map >= 0)
			(void)sy_bpf_delete(map, &bpf->job);
	}
}

void sy_bpf_end(struct sy_bpf *bpf)
{
	cleanup_close int lock = -1;

	if (!bpf->job)
		return;
	lock = sy_bpf_lock(bpf->base, false, NULL);
	if (lock >= 0) {
		forget(bpf);
		(void)sy_bpf_sweep(bpf->base);
	}
	close_all(bpf);
}

int64_t sy_bpf_user_of(const struct sy_bpf_usage *used, int64_t cpu)
{
	double both = (double)used->user_ns + (double)used->system_ns;

	return both > 0 ? (int64_t)((double)cpu * (double)used->user_ns / both) : cpu;
}
