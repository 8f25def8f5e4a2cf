/* A job whose cgroup counts CPU and memory: how often its processes are read, and that values in
 * between are right. The group is made up, the processes are real. */
#include "tap.h"

#include "actors.h"
#include "counters/process_table.h"
#include "record/record.h"
#include "sampler/job_reading.h"
#include "sampler/job_usage.h"

#include <ftw.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define GROUP	   "/steelyard.slice/job_7"
#define PERIOD_US  100000
#define A_SECOND   10 /* samples */
#define MB	   (1 << 20)
#define ANSWERS	   4096 /* bytes: actors write one when they are done */
#define ROUNDED_US 2

static struct timespec monotonic; /* moves only when we set it */
static int clocks, preads;	  /* of processes; of whatever */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	clocks += clock < 0;
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, now);
	*now = monotonic;
	return 0;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t at)
{
	preads++;
	return syscall(SYS_pread64, fd, buffer, size, at);
}

static struct sy_job *job;
static struct sy_kernel_count not_counting;
static struct sy_line line;
static struct sy_status status;
static bool root_in_step;
static char tree[] = "/tmp/steelyard-job.XXXXXX", folder[256];

/* The contents of /proc/PID/cgroup of our actors. */
int openat(int dir, const char *path, int flags, ...)
{
	char own[sizeof(folder) + 16];
	int pid = atoi(path);

	for (int i = root_in_step ? 0 : 1; i < ACTORS && pid; i++)
		if (actor[i] == pid && strstr(path, "/cgroup")) {
			(void)snprintf(own, sizeof(own), "%s/%s", folder,
				       i == 0 && root_in_step ? "of_daemon" : "membership");
			return (int)syscall(SYS_openat, AT_FDCWD, own, O_RDONLY, 0);
		}
	return (int)syscall(SYS_openat, dir, path, flags, 0);
}

static void set(const char *file, const char *key, int64_t value)
{
	char path[sizeof(folder) + 32];
	FILE *out;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, file);
	out = fopen(path, "w");
	if (!out)
		exit(ok(false, "a file of the group"));
	(void)fprintf(out, "%s%" PRId64 "\n", key, value);
	(void)fclose(out);
}

static void set_group(int64_t cpu_us, int64_t memory_bytes)
{
	set("cpu.stat", "usage_usec ", cpu_us);
	set("memory.stat", "file_mapped 0\nshmem 0\nanon ", memory_bytes);
	set("membership", "0::" GROUP "/step_0/task_", 0);
}

/* `file` of set() may lie in a folder. */
static void set_tasks(int64_t cpu_us)
{
	set("step_0/user/cpu.stat", "usage_usec ", cpu_us);
}

static void make_folders(char *path)
{
	for (char *at = path + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		(void)mkdir(path, 0700);
		*at = '/';
	}
	(void)mkdir(path, 0700);
}

static void take_sample(enum sy_reading look)
{
	monotonic.tv_nsec += PERIOD_US * 1000;
	monotonic.tv_sec += monotonic.tv_nsec / 1000000000;
	monotonic.tv_nsec %= 1000000000;
	sy_line_clear(&line);
	sy_job_read(job, look, &line, &status);
	sy_sums_add(&status.sums, &line);
}

/* Actor 0 is the root. */
static void begin(void)
{
	struct sy_error err;

	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &monotonic);
	job = calloc(1, sizeof(*job));
	status = (struct sy_status){.finished = false};
	sy_sums_init(&status.sums);
	if (!ok(job && sy_processes_init(&job->processes, 0, 0, 64, &err) == 0, "a sampler"))
		exit(done_testing());
	sy_cgroup_init(&job->cgroup);
	job->kernel = &not_counting;
	job->period_us = PERIOD_US;
	set_group(5000000, 3 * MB);
	enter(0, -1);
	enter(1, 0);
	enter(2, 0);
	sy_processes_root(&job->processes, actor[0]);
	sy_step_groups_init(&job->steps, &job->processes, open(tree, O_RDONLY | O_DIRECTORY), 0);
	sy_step_groups_add(&job->steps, actor[0]);
	sy_cgroup_open(&job->cgroup, open(tree, O_RDONLY | O_DIRECTORY), GROUP);
	sy_processes_cgroup(&job->processes, job->cgroup.path);
	sy_job_start_counting(job, open(tree, O_RDONLY | O_DIRECTORY));
	sy_job_report_cpu_source(job, &status);
	for (int i = 0; i < 3; i++)
		take_sample(SY_READING_NOW);
}

static void end(void)
{
	reap(0, 1);
	reap(0, 2);
	(void)send_order(0, ACT_END, 0);
	(void)waitpid(actor[0], NULL, 0);
	free(job);
}

static void test_processes_are_asked_once_a_second(void)
{
	int before, requested = 0;

	begin();
	is_int(sy_processes_alive(&job->processes), 2, "processes of the job");
	for (int i = 0; i < 3 * A_SECOND; i++) {
		before = clocks;
		take_sample(SY_READING_DUE);
		requested += clocks > before;
	}
	is_int(requested, 3, "processes are asked in so many of 30 samples");
	before = preads;
	take_sample(SY_READING_DUE);
	is_int(preads - before, 2, "files read in any other: CPU and memory of the group");
	end();
}

static void test_a_sample_between_tells_the_group(void)
{
	int64_t written, cpu_us;

	begin();
	take_sample(SY_READING_NOW);
	written = line.cell[SY_WCHAR];
	cpu_us = line.cell[SY_CPU];
	(void)send_order(1, ACT_WRITE, MB);
	set_group(5700000, 7 * MB);
	take_sample(SY_READING_DUE);
	is_int(line.cell[SY_CPU] - cpu_us, 700000, "CPU that the group has counted since");
	is_int(line.cell[SY_MEMORY], 7 * MB, "memory of the group");
	is_int(line.cell[SY_WCHAR], written, "I/O of a moment ago");
	take_sample(SY_READING_NOW);
	written = line.cell[SY_WCHAR] - written;
	ok(written >= MB && written < MB + ANSWERS, "asked now: %" PRId64 " bytes", written);
	(void)send_order(1, ACT_WRITE, MB);
	take_sample(SY_READING_LAST);
	is_int(line.cell[SY_CPU] - cpu_us, 700000, "CPU at the end");
	end();
}

/* Page cache that gives way to anonymous memory leaves the charge as it is. */
static void test_memory_is_read_though_the_charge_stays(void)
{
	begin();
	for (int64_t megabytes = 8; megabytes > 4; megabytes--) {
		set_group(5000000, megabytes * MB);
		take_sample(SY_READING_DUE);
		is_int(line.cell[SY_MEMORY], megabytes * MB, "memory of the group, read again");
	}
	is_int(status.sums.largest[SY_MAX_MEMORY_BYTES], 8 * MB, "the peak");
	is_int(status.memory_source, SY_SOURCE_CGROUP2, "is the group's");
	end();
}

static void begin_step(void)
{
	char path[sizeof(folder) + 32];
	FILE *out;

	root_in_step = true;
	(void)snprintf(path, sizeof(path), "%s/of_daemon", folder);
	out = fopen(path, "w");
	if (!out)
		exit(ok(false, "where the daemon is"));
	(void)fprintf(out, "1:name=x:/\n0::%s/step_0/slurm\n", GROUP);
	(void)fclose(out);
	(void)snprintf(path, sizeof(path), "%s/step_0/user", folder);
	make_folders(path);
	set_tasks(0);
	begin();
}

/* Version 2: the job's group counts what a step's daemon uses at its end, of which nobody can ask
 * it any more. */
static void test_what_a_daemon_uses_at_its_end(void)
{
	char path[sizeof(folder) + 32];

	begin_step();
	set_tasks(300000);
	set_group(5900000, 3 * MB);
	take_sample(SY_READING_DUE);
	is_int(line.cell[SY_CPU], 300000, "what the group of the tasks has counted");
	sy_step_groups_done(&job->steps, actor[0], 250000);
	sy_step_groups_done(&job->steps, actor[0], 250000);
	set_group(6200000, 3 * MB);
	take_sample(SY_READING_NOW);
	is_int(line.cell[SY_CPU], 300000, "the tasks have ended, the daemon goes on");
	is_int(status.gap_us, SY_UNKNOWN, "not every step has reported");
	(void)snprintf(path, sizeof(path), "%s/step_0/user/cpu.stat", folder);
	(void)truncate(path, 0);
	set_group(6500000, 3 * MB);
	take_sample(SY_READING_LAST);
	is_int(line.cell[SY_CPU], 300000, "its group is gone");
	is_int(status.gap_us, 300000, "CPU that no step has reported");
	ok(sy_has_gap(&status), "more than two readings may differ by");
	end();
}

static void set_parts(int64_t user_us, int64_t system_us)
{
	char path[sizeof(folder) + 32];
	FILE *out;

	(void)snprintf(path, sizeof(path), "%s/step_0/user/cpu.stat", folder);
	out = fopen(path, "w");
	if (!out)
		exit(ok(false, "a group of tasks"));
	(void)fprintf(out,
		      "usage_usec %" PRId64 "\nuser_usec %" PRId64 "\nsystem_usec %" PRId64 "\n",
		      user_us + system_us, user_us, system_us);
	(void)fclose(out);
}

/* As the groups of the tasks report it, if all did. */
static void test_user_and_system_time_of_steps(void)
{
	begin_step();
	status.user_us = status.system_us = SY_UNKNOWN;
	set_tasks(100000);
	take_sample(SY_READING_DUE);
	sy_job_split(job, &status);
	is_int(status.user_us, SY_UNKNOWN, "a group that tells of no parts");
	set_parts(300000, 100000);
	take_sample(SY_READING_DUE);
	sy_job_split(job, &status);
	is_int(status.user_us, 300000, "user time");
	is_int(status.system_us, 100000, "system time");
	sy_step_groups_done(&job->steps, actor[0], 404000);
	sy_step_groups_add(&job->steps, INT32_MAX);
	sy_step_groups_done(&job->steps, INT32_MAX, 4000);
	take_sample(SY_READING_DUE);
	sy_job_split(job, &status);
	is_int(status.user_us, 306000, "with what its daemon has waited for, and a short step");
	is_int(status.system_us, 102000, "the rest");
	status.user_us = status.system_us = SY_UNKNOWN;
	sy_step_groups_add(&job->steps, INT32_MAX - 1);
	sy_step_groups_done(&job->steps, INT32_MAX - 1, 5000);
	take_sample(SY_READING_DUE);
	sy_job_split(job, &status);
	is_int(status.user_us, SY_UNKNOWN, "more than a hundredth of short steps");
	end();
}

/* A step so short that no sample found its group, and one whose daemon reports more. */
static void test_a_step_tells_more_than_its_group(void)
{
	begin_step();
	set_tasks(300000);
	sy_step_groups_done(&job->steps, actor[0], 350000);
	is_int(sy_step_groups_cpu_us(&job->steps), 350000, "what its daemon has waited for");
	sy_step_groups_add(&job->steps, INT32_MAX);
	sy_step_groups_find(&job->steps);
	sy_step_groups_done(&job->steps, INT32_MAX, 20000);
	sy_step_groups_done(&job->steps, INT32_MAX, 21000);
	is_int(sy_step_groups_cpu_us(&job->steps), 371000, "and a step that nobody saw");
	for (int i = 1; i < 2 * SY_MAX_STEPS; i++) {
		sy_step_groups_add(&job->steps, INT32_MAX - i);
		sy_step_groups_done(&job->steps, INT32_MAX - i, 1000);
	}
	is_int(sy_step_groups_cpu_us(&job->steps), 371000 + (2 * SY_MAX_STEPS - 1) * 1000,
	       "and more steps than there is room for, one after another");
	sy_step_groups_add(&job->steps, INT32_MAX - 1);
	sy_step_groups_done(&job->steps, INT32_MAX - 1, 5000);
	is_int(sy_step_groups_cpu_us(&job->steps), 376000 + (2 * SY_MAX_STEPS - 1) * 1000,
	       "and an id that comes again");
	end();
}

/* It is where processes are that pam_slurm_adopt moves there. */
static void test_the_sleep_of_the_extern_step(void)
{
	static struct sy_step_groups groups;
	int64_t before_ns, used_us, cpu_us;

	begin_step();
	sy_step_groups_init(&groups, &job->processes, open(tree, O_RDONLY | O_DIRECTORY), actor[0]);
	job->processes.extern_sleep = actor[1];
	set_tasks(90000000);
	before_ns = sy_process_clock_ns(actor[1]);
	sy_step_groups_find(&groups);
	is_int(sy_step_groups_cpu_us(&groups), 0, "what it had used before");
	(void)send_order(1, ACT_BURN_MS, 50);
	used_us = (sy_process_clock_ns(actor[1]) - before_ns) / 1000;
	set_tasks(90000000 + used_us + 7000);
	cpu_us = sy_step_groups_cpu_us(&groups);
	ok(llabs(cpu_us - 7000) <= ROUNDED_US, "what others in its group use: %" PRId64, cpu_us);
	end();
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
	(void)info;
	(void)kind;
	(void)walk;
	return remove(path);
}

int main(void)
{
	open_stage();
	if (!mkdtemp(tree))
		return 1;
	(void)snprintf(folder, sizeof(folder), "%s/sys/fs/cgroup%s", tree, GROUP);
	make_folders(folder);
	test_processes_are_asked_once_a_second();
	test_a_sample_between_tells_the_group();
	test_memory_is_read_though_the_charge_stays();
	test_what_a_daemon_uses_at_its_end();
	test_a_step_tells_more_than_its_group();
	test_user_and_system_time_of_steps();
	test_the_sleep_of_the_extern_step();
	(void)nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return done_testing();
}
