#include "profile.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <x86intrin.h>
#define HAVE_TSC 1
#endif

#include "sent_bytes.h"

#ifdef OPEN_MPI
#define OURS "Open MPI"
#else
#define OURS "MPICH"
#endif

static struct sy_profile mine;
static bool running;
static bool use_tsc;
static uint64_t start_ticks;
static double start_s;
/* The library is loaded before the program starts, so this is fast. */
static __thread int depth __attribute__((tls_model("initial-exec")));

static double monotonic_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A counter that runs evenly whatever the processor does: CPUID 8000_0007h, EDX bit 8 (Intel SDM
 * vol. 3, 18.17.1; AMD APM vol. 3). Where the kernel has no fast clock, as in User Mode Linux, it
 * is a thousand times cheaper than asking. */
static bool tsc_is_invariant(void)
{
#ifdef HAVE_TSC
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1U << 8));
#else
	return false;
#endif
}

static inline uint64_t ticks_now(void)
{
	struct timespec now;

#ifdef HAVE_TSC
	if (use_tsc)
		return __rdtsc();
#endif
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* With MPI_THREAD_MULTIPLE: the time of the process in which at least one thread is in a call,
 * since the threads' own times may add up to more than there was. */
static pthread_mutex_t inside_lock = PTHREAD_MUTEX_INITIALIZER;
static int inside;
static uint64_t inside_since;

static void enter(uint64_t now)
{
	pthread_mutex_lock(&inside_lock);
	if (inside++ == 0)
		inside_since = now;
	pthread_mutex_unlock(&inside_lock);
}

static void leave(uint64_t now)
{
	pthread_mutex_lock(&inside_lock);
	if (--inside == 0 && now > inside_since)
		mine.inside_ticks += now - inside_since;
	pthread_mutex_unlock(&inside_lock);
}

struct sy_timing sy_begin(void)
{
	struct sy_timing timing = {.counts = depth++ == 0 && running};

	if (!timing.counts)
		return timing;
	timing.start = ticks_now();
	if (mine.many_threads)
		enter(timing.start);
	return timing;
}

/* Several threads may be in MPI at once. */
static void add(uint64_t *sum, uint64_t value)
{
	__atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}

static int size_class(uint64_t bytes)
{
	return bytes ? 64 - __builtin_clzl(bytes) : 0;
}

void sy_end(struct sy_timing timing, enum sy_call call, long bytes)
{
	uint64_t end;

	depth--;
	if (!timing.counts)
		return;
	end = ticks_now();
	if (mine.many_threads)
		leave(end);
	add(&mine.count[call].calls, 1);
	/* Counters of two processors may differ by a few ticks. */
	if (end > timing.start)
		add(&mine.count[call].ticks, end - timing.start);
	if (bytes >= 0) {
		add(&mine.count[call].messages, 1);
		add(&mine.count[call].bytes, (uint64_t)bytes);
		add(&mine.sizes[size_class((uint64_t)bytes)], 1);
	} else if (bytes == SY_NOT_KEPT) {
		add(&mine.count[call].uncounted, 1);
	}
}

/* Loaded into a program of another MPI, every call of ours would be a wrong one: better no run. */
static void refuse_other_mpi(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0;

	PMPI_Get_library_version(text, &length);
	if (strstr(text, OURS) || (!strcmp(OURS, "MPICH") && strstr(text, "Intel")))
		return;
	text[strcspn(text, "\n")] = '\0';
	fprintf(stderr,
		"steelyard-mpiprof: built for " OURS ", but the program runs with %s: build it "
		"with that MPI's mpicc, and say where by STEELYARD_MPIPROF_LIB "
		"(docs/mpi-profile.md)\n",
		text);
	_exit(3);
}

void sy_start_init(void)
{
	depth++;
	use_tsc = tsc_is_invariant();
	start_ticks = ticks_now();
	start_s = monotonic_s();
}

static bool has_concurrent_threads(void)
{
	int level = MPI_THREAD_SINGLE;

	PMPI_Query_thread(&level);
	return level == MPI_THREAD_MULTIPLE;
}

void sy_end_init(int code)
{
	depth--;
	mine.init_s = monotonic_s() - start_s;
	if (code != MPI_SUCCESS)
		return;
	refuse_other_mpi();
	sy_find_fortran();
	gethostname(mine.node, sizeof(mine.node) - 1);
	mine.many_threads = has_concurrent_threads();
	running = true;
}

/* On rank 0: room for the profiles of all ranks; NULL, after a message, when no file will be
 * written. */
static struct sy_profile *allocate_profiles(int ranks, const char *path)
{
	struct sy_profile *all = NULL;

	if (!path)
		fputs("steelyard-mpiprof: no profile: STEELYARD_MPIPROF_OUT names no file\n",
		      stderr);
	else if (!(all = calloc((size_t)ranks, sizeof(*all))))
		fprintf(stderr, "steelyard-mpiprof: no profile: no memory for %d ranks\n", ranks);
	return all;
}

static void collect(const char *path, const char *mpi)
{
	struct sy_profile *all = NULL;
	const int rank = sy_rank(MPI_COMM_WORLD), ranks = sy_peers(MPI_COMM_WORLD);
	int wanted;

	if (rank == 0)
		all = allocate_profiles(ranks, path);
	wanted = all != NULL;
	PMPI_Bcast(&wanted, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (!wanted)
		return;
	PMPI_Gather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (rank == 0 && sy_write(path, all, ranks, use_tsc ? "tsc" : "monotonic", mpi))
		fprintf(stderr, "steelyard-mpiprof: no profile: %s: %s\n", path, strerror(errno));
	free(all);
}

/* Before MPI_Finalize, which no rank leaves out. */
void sy_report(void)
{
	char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0;
	uint64_t ticks;

	if (!running)
		return;
	running = false;
	ticks = ticks_now() - start_ticks;
	mine.total_s = monotonic_s() - start_s;
	mine.seconds_per_tick = ticks ? mine.total_s / (double)ticks : 0;
	PMPI_Get_library_version(mpi, &length);
	mpi[strcspn(mpi, "\n")] = '\0';
	collect(getenv("STEELYARD_MPIPROF_OUT"), mpi);
}
