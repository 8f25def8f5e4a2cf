#include "bpf/job.h"

#include "base/file.h"
#include "bpf/pins.h"
#include "bpf/system_call.h"

#include <errno.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_us(int us)
{
	const struct timespec pause = {.tv_nsec = us * 1000L};

	(void)nanosleep(&pause, NULL);
}

void sy_bpf_reap(struct sy_bpf *bpf)
{
	for (int i = 0; i < SY_BPF_MAPS; i++) {
		while (bpf->maker[i] > 0 && waitpid(bpf->maker[i], NULL, __WALL) < 0 &&
		       errno == EINTR)
			continue;
		bpf->maker[i] = 0;
	}
}

/* True when the map is in place. `result` is 0, or -errno where the child that inserts it has
 * ended. */
static bool is_inserted(int outer, const uint64_t *job, pid_t *maker, int *result)
{
	uint32_t number;
	int status = 0;
	/* Another part of this process may have reaped it. Nobody may wait forever with the lock
	 * held. */
	bool ended = waitpid(*maker, &status, WNOHANG | __WALL) != 0;

	*result = 0;
	if (ended)
		*maker = 0;
	if (sy_bpf_lookup(outer, job, &number) == 0)
		return true;
	if (!ended)
		return false;
	*result = -(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EIO);
	return true;
}

/* The kernel shows the map at once and then blocks the caller for a grace period, some 15 ms, so
 * a child inserts it. The child shares our descriptors and keeps no lock of ours. */
static int insert_map(struct sy_bpf *bpf, int outer, int inner)
{
	pid_t *maker = bpf->maker;
	uint32_t number;
	int result;

	if (sy_bpf_lookup(outer, &bpf->job, &number) == 0)
		return -EEXIST;
	while (*maker)
		maker++;
	*maker = (pid_t)syscall(SYS_clone, CLONE_FILES, NULL, NULL, NULL, NULL);
	if (*maker == 0)
		_exit(-sy_bpf_update(outer, &bpf->job, &inner, SY_BPF_NOEXIST));
	if (*maker < 0) {
		*maker = 0;
		return sy_bpf_update(outer, &bpf->job, &inner, SY_BPF_NOEXIST);
	}
	while (!is_inserted(outer, &bpf->job, maker, &result))
		pause_us(50);
	return result;
}

/* Insert a map of the job's own into the pinned map of that name: its descriptor, or -errno. */
static int make_own_map(struct sy_bpf *bpf, const char *base, const char *name,
			enum sy_bpf_map_type type, uint32_t value_size, uint32_t entries,
			uint32_t flags)
{
	cleanup_close int outer = sy_bpf_open(base, name);
	int inner, result;

	if (outer < 0)
		return outer;
	inner = sy_bpf_map_create(type, value_size, entries, flags, "sy_job");
	if (inner < 0)
		return inner;
	result = insert_map(bpf, outer, inner);
	if (result == 0)
		return inner;
	(void)close(inner);
	return result;
}

static int map_memory(struct sy_bpf *bpf, int how)
{
	void *mapped = mmap(NULL, sizeof(*bpf->mapped), how, MAP_SHARED, bpf->map, 0);

	bpf->mapped = mapped == MAP_FAILED ? NULL : mapped;
	return bpf->mapped ? 0 : -errno;
}

/* Written once; afterwards only the kernel writes the map. */
static int set_begin(struct sy_bpf *bpf, uint64_t now_ns)
{
	int result = map_memory(bpf, PROT_READ | PROT_WRITE);
	struct stat own;

	if (result < 0)
		return result;
	bpf->mapped->since_ns = now_ns;
	bpf->mapped->network = stat("/proc/self/ns/net", &own) == 0 ? own.st_ino : 0;
	return mprotect(bpf->mapped, sizeof(*bpf->mapped), PROT_READ) < 0 ? -errno : 0;
}

/* The jobs' map last: what is in there is counted. */
int sy_bpf_make_maps(struct sy_bpf *bpf, const char *base, uint64_t now_ns)
{
	cleanup_close int queue = make_own_map(bpf, base, "queues", SY_BPF_MAP_QUEUE,
					       sizeof(struct sy_bpf_listed), SY_BPF_LIST, 0);
	cleanup_close int list =
	    make_own_map(bpf, base, "lists", SY_BPF_MAP_ARRAY, sizeof(struct sy_bpf_list), 1, 0);

	if (queue < 0 || list < 0)
		return queue < 0 ? queue : list;
	bpf->map = make_own_map(bpf, base, "jobs", SY_BPF_MAP_ARRAY, sizeof(struct sy_bpf_job), 1,
				SY_BPF_MMAPABLE);
	return bpf->map < 0 ? bpf->map : set_begin(bpf, now_ns);
}

bool sy_bpf_open_maps(struct sy_bpf *bpf, const char *base)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");
	uint32_t number;

	if (jobs < 0 || sy_bpf_lookup(jobs, &bpf->job, &number) < 0)
		return false;
	bpf->map = sy_bpf_get_by_number(number);
	return bpf->map >= 0 && map_memory(bpf, PROT_READ) == 0;
}

bool sy_bpf_await(const char *base, uint64_t number, int patience_ms)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");
	uint32_t map;

	for (int tries = patience_ms * 5; jobs >= 0 && tries > 0; tries--) {
		if (sy_bpf_lookup(jobs, &number, &map) == 0)
			return true;
		pause_us(200);
	}
	return false;
}
