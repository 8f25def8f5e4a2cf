#include "meters/meters.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/rights.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANGS_S 30 /* longer than any meter takes */
#define SHARED_US                                                                                  \
	1000000 /* how old another sampler's reading may be where a job begins or ends             \
		 */

/* Where it has its three descriptors. */
enum { ROOT_FD = 3, ASK_FD, LIFE_FD, FDS };

static struct {
	struct sy_meters *meters;
	int64_t due_us[SY_MAX_ZONES];
} p;

static bool is_read_by_this_process(int i)
{
	return p.meters->meter[i].period_us && p.meters->energy[i].valid;
}

static void publish_energy(int i)
{
	sy_slow_write(p.meters->slow, i, &p.meters->energy[i]);
}

/* With the rights that the sampler was started with; afterwards without. */
static void open_meters(void)
{
	for (int i = 0; i < p.meters->count; i++) {
		struct sy_meter *meter = &p.meters->meter[i];
		struct sy_error err = {""};

		if (is_read_by_this_process(i) && meter->reader->open(ROOT_FD, meter, &err) < 0) {
			sy_energy_invalidate(&p.meters->energy[i], err.text);
			publish_energy(i);
		}
	}
	if (sy_rights_drop_all(NULL) < 0)
		_exit(1);
}

static void add_value(int i, int64_t at, int64_t value)
{
	const struct sy_meter *meter = &p.meters->meter[i];
	struct sy_energy *energy = &p.meters->energy[i];

	if (meter->power && !energy->power && !energy->started)
		sy_energy_init_power(energy, meter->period_us, meter->mean_us);
	if (energy->power)
		sy_energy_add_power(energy, at, value);
	else
		sy_energy_add(energy, at, value);
}

/* Such a meter reports when it measured, so a reading may repeat the last value. A value from
 * before the job counts from the job's begin, and the last power reading until the job's end. */
static void add_dated_value(int i, int64_t now, int64_t value, bool last)
{
	const struct sy_meter *meter = &p.meters->meter[i];
	struct sy_energy *energy = &p.meters->energy[i];

	if (!energy->started)
		add_value(i, now, value);
	else if (meter->at_us > energy->last_us)
		add_value(i, meter->at_us, value);
	if (last && meter->power && energy->valid && now > energy->last_us &&
	    now - meter->at_us <= sy_meter_stale_us(meter))
		add_value(i, now, value);
}

static void read_one(int i, bool last)
{
	struct sy_meter *meter = &p.meters->meter[i];
	int64_t before = sy_now_us(CLOCK_MONOTONIC), value, at;
	const char *reason = "it could no longer be read";

	meter->max_age_us =
	    last || !p.meters->energy[i].started ? SHARED_US : meter->period_us * 9 / 10;
	value = meter->reader->read(meter, &reason);
	at = before + (sy_now_us(CLOCK_MONOTONIC) - before) / 2;
	if (value < 0)
		sy_energy_invalidate(&p.meters->energy[i], reason);
	else if (meter->at_us)
		add_dated_value(i, at, value, last);
	else
		add_value(i, at, value);
	publish_energy(i);
}

/* A file of another writer is read often enough to miss none of its values. */
static int64_t read_interval_us(const struct sy_meter *meter)
{
	return meter->at_us ? meter->period_us / 2 : meter->period_us;
}

/* Read what is due, or all, for the last time; the time until the next, ms. */
static int read_due(bool all)
{
	int64_t next = INT64_MAX, now;

	for (int i = 0; i < p.meters->count; i++) {
		int64_t period = read_interval_us(&p.meters->meter[i]);

		if (!is_read_by_this_process(i))
			continue;
		now = sy_now_us(CLOCK_MONOTONIC);
		if (all || now >= p.due_us[i]) {
			read_one(i, all);
			if (now >= p.due_us[i])
				p.due_us[i] += ((now - p.due_us[i]) / period + 1) * period;
		}
		if (p.due_us[i] < next)
			next = p.due_us[i];
	}
	now = sy_now_us(CLOCK_MONOTONIC);
	if (next == INT64_MAX)
		return HANGS_S * 500;
	return next <= now ? 0 : (int)((next - now + 999) / 1000);
}

static void report_alive(void)
{
	(void)alarm(HANGS_S);
	atomic_store(&p.meters->slow->cpu_ns, sy_now_us(CLOCK_PROCESS_CPUTIME_ID) * 1000);
}

__attribute__((noreturn)) static void run(void)
{
	struct pollfd fds[] = {{ASK_FD, POLLIN, 0}, {LIFE_FD, POLLIN, 0}};
	struct sy_slow *slow = p.meters->slow;
	int64_t now = sy_now_us(CLOCK_MONOTONIC);

	for (int i = 0; i < p.meters->count; i++)
		p.due_us[i] = now;
	for (;;) {
		unsigned requested = atomic_load(&slow->requested);
		uint64_t count;
		int remaining;

		report_alive();
		remaining = read_due(requested != atomic_load(&slow->answered));
		report_alive();
		atomic_store(&slow->answered, requested);
		if (poll(fds, 2, remaining > HANGS_S * 500 ? HANGS_S * 500 : remaining) > 0 &&
		    fds[1].revents)
			_exit(0);
		(void)!read(ASK_FD, &count, sizeof(count));
	}
}

static void begin(int root, int life)
{
	sigset_t none;

	(void)signal(SIGALRM, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	sy_keep_descriptors((const int[]){-1, -1, -1, root, p.meters->slow->request_fd, life}, FDS);
	(void)alarm(HANGS_S);
	open_meters();
	run();
}

static void fail_all(const char *reason)
{
	for (int i = 0; i < p.meters->count; i++)
		if (p.meters->meter[i].period_us)
			sy_energy_invalidate(&p.meters->energy[i], reason);
}

/* Its own parent ends at once: nobody takes it for a process of the job. */
static int fork_twice(int root, int life)
{
	pid_t between = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);

	if (between == 0) {
		pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);

		if (pid == 0)
			begin(root, life);
		_exit(pid < 0);
	}
	return between < 0 || waitpid(between, NULL, __WALL) != between ? -1 : 0;
}

void sy_slow_start(struct sy_meters *meters, int root)
{
	bool some = false;
	int life[2];

	p.meters = meters;
	for (int i = 0; i < meters->count; i++)
		some |= is_read_by_this_process(i);
	if (!some)
		return;
	meters->slow = sy_slow_create();
	if (!meters->slow || pipe2(life, O_CLOEXEC) < 0) {
		fail_all("no memory or no descriptor left for the process that reads it");
		return;
	}
	for (int i = 0; i < meters->count; i++)
		sy_slow_write(meters->slow, i, &meters->energy[i]);
	meters->life_fd = life[1];
	if (fork_twice(root, life[0]) < 0)
		fail_all("the process that reads it could not be started");
	(void)close(life[0]);
}

int64_t sy_slow_end(struct sy_meters *meters)
{
	if (!meters->slow)
		return 0;
	(void)close(meters->life_fd);
	return atomic_load(&meters->slow->cpu_ns);
}
