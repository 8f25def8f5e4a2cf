#include "spank_steelyard.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "admin_comment_launch.h"
#include "allocation.h"
#include "base/file.h"
#include "conditions.h"
#include "config.h"
#include "counters/cgroup.h"
#include "counters/child_processes.h"
#include "job/config.h"
#include "job/kernel_count.h"
#include "job/node_log.h"
#include "job/samplers.h"
#include "job_cgroup.h"
#include "options.h"
#include "sampler_launch.h"
#include "step_identity.h"

#define LAST_WORDS_MS 1000 /* a sampler that only starts takes ten messages, then none */
#define LONG_STEP_S   1	   /* half a second at its end is not noticed */

static struct sy_config config;
static struct sy_node_program program;
static struct sy_step step;
static struct sy_message_queue queue = {.fd = -1};
static struct sockaddr_un control;
static struct sy_counted counted;
static bool started_sampler; /* by this very step */
static bool knows_step;
static bool sets_admin_comment; /* at this step's end */
static bool admin_comment_is_set;
static bool usage_reported;
static struct timespec started;

static struct sy_own_usage at_start;
static bool counted_at_start;

static void complain(const char *sentence)
{
	slurm_error("steelyard: %s", sentence);
}

void sy_stepd_init(spank_t spank, int ac, char **av)
{
	sy_config_parse(&config, ac, av, complain);
	program = sy_slurm_program(&config);
	sy_options_register(spank, &config);
}

/* From now on the kernel counts what we start: before any task is forked. The extern step's daemon
 * starts none: it would only wait for the kernel to make the maps, some 20 ms, which the sampler
 * does meanwhile. */
static void start_bpf_accounting(void)
{
	if (config.node.bpf && queue.fd >= 0 && !step.extern_step)
		sy_counted_join(&counted, &control, SY_BPF_STEPD);
}

/* The sampler was killed, or never began. */
static void finalize_record_of_dead_sampler(void)
{
	char path[SY_PATH_SIZE];

	sy_finish_records(&program, step.node);
	sy_counted_forget(&counted, &program, sy_slurm_bpf(&config, path));
}

static void start_sampler(spank_t spank)
{
	enum sy_exclusive exclusive = sy_exclusive_of(spank, &config, step.node);
	char user[32], path[SY_PATH_SIZE];
	char *alone = (char *)(exclusive == SY_ALONE ? "exclusive=yes" : "exclusive=no");
	char *fields[] = {(char *)"scheduler=slurm", user, exclusive == SY_NOT_SAID ? NULL : alone,
			  NULL};
	struct sy_error err;

	(void)snprintf(user, sizeof(user), "user_id=%u", step.uid);
	sy_log_forward(config.node.run_dir, step.node, complain);
	sy_cold_cache_forget(&config, &step); /* of an earlier start of the same job */
	sy_remove_stale_sockets(config.node.run_dir, step.node);
	sy_finish_records(&program, step.node);
	sy_counted_load(&program, sy_slurm_bpf(&config, path), SY_LOAD_MS);
	if (sy_slurm_launch(&config, &step, &control, fields, &err) < 0)
		slurm_error("steelyard: job %u on %s is not sampled: %s", step.job_id, step.node,
			    err.text);
	else
		started_sampler = true;
}

/* Slurm reports "no array task" and restart 0 to an extern step, whatever the job is. */
static void report_array(spank_t spank)
{
	uint32_t array_id, task_id;

	if (spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &task_id) != ESPANK_SUCCESS ||
	    task_id >= 0xfffffffd ||
	    spank_get_item(spank, S_JOB_ARRAY_ID, &array_id) != ESPANK_SUCCESS)
		return;
	sy_queue_send(&queue, "job array_job_id %u", array_id);
	sy_queue_send(&queue, "job array_task_id %u", task_id);
}

/* The variable has all tags in their order; the option itself only the last one. */
static void collect_tags(spank_t spank)
{
	static char text[sizeof(sy_options.tags.items)];
	struct sy_tags given = sy_options.tags;

	if (!sy_step_variable(spank, SY_TAGS_VARIABLE, text, sizeof(text)))
		return;
	sy_options.tags.count = 0;
	sy_tags_add_joined(&sy_options.tags, text);
	for (size_t i = 0; i < given.count; i++)
		(void)sy_tags_add(&sy_options.tags, given.items[i], NULL);
}

/* What only this step knows: its processes, the user's options, the job's environment. */
static void announce(spank_t spank)
{
	static const struct {
		const char *field, *variable;
	} variables[] = {
	    {"cluster", "SLURM_CLUSTER_NAME"},
	    {"name", "SLURM_JOB_NAME"},
	};
	char value[SY_MESSAGE_MAX - 32];
	struct rusage waited;

	(void)getrusage(RUSAGE_CHILDREN, &waited);
	sy_queue_send(&queue, "root %d %ld %lld", (int)getpid(), waited.ru_minflt,
		      (long long)counted.since_ns);
	if (sy_options.has_rate)
		sy_queue_send(&queue, "rate %g", sy_options.rate_hz);
	collect_tags(spank);
	for (size_t i = 0; i < sy_options.tags.count; i++)
		sy_queue_send(&queue, "tag %s", sy_options.tags.items[i]);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (sy_step_variable(spank, variables[i].variable, value, sizeof(value)))
			sy_queue_send(&queue, "job %s %s", variables[i].field, value);
	}
	if (sy_step_list_nodes(spank, &step, value, sizeof(value)))
		sy_queue_send(&queue, "job nodes %s", value);
	report_array(spank);
}

/* The user expects tags or conditions in the accounting: that is worth a moment of waiting. */
static bool comment_is_expected(void)
{
	return sy_options.tags.count > 0 || sy_options.has_netem;
}

static bool has_lasted(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - started.tv_sec > LONG_STEP_S;
}

void sy_stepd_start(spank_t spank)
{
	if (sy_step_identify(spank, &step) < 0) {
		slurm_error("steelyard: Slurm does not give the job's id: job not sampled");
		return;
	}
	if (!sy_control_address(&control, config.node.run_dir, step.node, step.id)) {
		slurm_error("steelyard: run_dir=%s is too long for a socket: job %u not sampled",
			    config.node.run_dir, step.job_id);
		return;
	}
	knows_step = true;
	sets_admin_comment =
	    !step.extern_step && config.admin_comment && sy_admin_comment_is_due(&step);
	(void)clock_gettime(CLOCK_MONOTONIC, &started);
	if (step.extern_step || !step.extern_runs)
		sy_conditions_reap(&config, "next job");
	/* Without an extern step the first step on the node measures itself (docs/admin.md). */
	if (step.extern_step || (!step.extern_runs && !sy_queue_open(&queue, &control)))
		start_sampler(spank);
	/* The extern step's not only at its end, when it may have the user's rights for a moment
	 * (24.11). */
	if (queue.fd < 0 && (started_sampler || !step.extern_step) &&
	    !sy_queue_open(&queue, &control))
		slurm_verbose("steelyard: no sampler for job %u on %s", step.job_id, step.node);
	start_bpf_accounting();
	if (step.extern_step)
		return;
	announce(spank);
	sy_conditions_start(spank, &config, &step, &queue);
}

/* No task of this step runs yet, of a job's first step none at all: what its cgroup has counted is
 * the extern step's start, or was left by an earlier start of the job. */
static void report_earlier_use(const char *path)
{
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sy_cgroup group;
	int64_t used_us;

	sy_cgroup_init(&group);
	if (strlen(path) >= sizeof(group.path))
		return;
	(void)strcpy(group.path, path);
	sy_cgroup_open_missing(&group, root);
	used_us = sy_cgroup_cpu_us(&group);
	sy_cgroup_close_cpu(&group);
	sy_cgroup_close_memory(&group);
	if (used_us != SY_UNKNOWN)
		sy_queue_send(&queue, "counted %lld", (long long)used_us);
}

/* The cgroup that is the whole job's: this step's, or one of its tasks' knows it. */
static void report_cgroup(spank_t spank)
{
	char task[16], path[SY_MESSAGE_MAX - 16];
	pid_t pid;

	if (!sy_job_cgroup_read("self", step.job_id, path, sizeof(path))) {
		if (spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS)
			return;
		(void)snprintf(task, sizeof(task), "%d", (int)pid);
		if (!sy_job_cgroup_read(task, step.job_id, path, sizeof(path)))
			return;
	}
	report_earlier_use(path);
	sy_queue_send(&queue, "cgroup %s", path);
}

void sy_stepd_task(spank_t spank)
{
	static bool announced;

	sy_queue_flush(&queue);
	if (announced || queue.fd < 0)
		return;
	announced = true;
	/* As late as can be: the first task waits to be let go. */
	counted_at_start = sy_own_usage_read(&at_start);
	/* Not in the extern step: its `sleep` is just being started, in the job's group, too. */
	if (!step.extern_step)
		report_cgroup(spank);
}

/* In the task's own process, as the user, shortly before it becomes the job's program: Slurm
 * 22.05 reports restart 0 everywhere; the variable is right, but only here, and unset at the
 * first start. */
void sy_stepd_child(spank_t spank)
{
	char count[16];

	sy_conditions_enforce(spank);
	if (queue.fd < 0)
		return;
	if (!sy_step_variable(spank, "SLURM_RESTART_COUNT", count, sizeof(count)))
		(void)snprintf(count, sizeof(count), "0");
	sy_queue_send(&queue, "job restart_count %s", count);
	sy_own_gpus_report(spank, &step, &queue);
}

/* The step's final counters, without what slurmstepd itself has read and written: once. Where Slurm
 * has not reported the last task's end, threads of slurmstepd may have ended, whose bytes are then
 * among the tasks'. */
static void report_usage(bool threads_live)
{
	struct sy_own_usage now;
	char bytes[128] = "";

	if (usage_reported || queue.fd < 0 || !counted_at_start || !sy_own_usage_read(&now))
		return;
	usage_reported = true;
	for (size_t i = 0; i < 4; i++)
		now.io[i] -= now.io[i] < at_start.io[i] ? now.io[i] : at_start.io[i];
	if (threads_live && now.io_known && at_start.io_known)
		(void)snprintf(bytes, sizeof(bytes), " %lld %lld %lld %lld", (long long)now.io[0],
			       (long long)now.io[1], (long long)now.io[2], (long long)now.io[3]);
	if (now.largest_bytes > 0)
		sy_queue_send(&queue, "peak %lld", now.largest_bytes);
	sy_queue_send(&queue, "done %d %lld%s", (int)getpid(), now.cpu_us - at_start.cpu_us, bytes);
}

static void set_admin_comment(spank_t spank)
{
	sy_admin_comment_set(spank, &config, &step, &queue);
	admin_comment_is_set = true;
}

/* This is before srun hears of the last task's end: srun ends its job as soon as it hears of it,
 * and then Slurm takes no comment any more. In a job without a batch step it is set here. A short
 * first step, which may be all of `srun true`, does not wait for that unless asked. A later one
 * does: without its part AdminComment would have that of the steps before. */
void sy_stepd_task_exit(spank_t spank)
{
	static uint32_t ended;
	uint32_t tasks;

	ended++;
	if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
	    ended != tasks)
		return;
	report_usage(true);
	if (!step.batch_step && sets_admin_comment &&
	    (comment_is_expected() || has_lasted() || step.step_id > 0))
		set_admin_comment(spank);
}

/* The extern step's slurmstepd was killed, or Slurm has ended it (--no-kill, another node lost):
 * with the batch step the job ends here. */
static bool must_end_job(void)
{
	return step.batch_step && step.extern_runs && sy_step_extern_pid(&step) == 0;
}

void sy_stepd_exit(spank_t spank)
{
	if (!knows_step)
		return;
	if (!step.extern_step) {
		report_usage(false);
		if (sets_admin_comment && !admin_comment_is_set)
			set_admin_comment(spank);
		if (must_end_job())
			sy_queue_send(&queue, "leave");
	}
	if (step.extern_step)
		sy_conditions_end(&config, &step);
	if (started_sampler) {
		sy_log_forward(config.node.run_dir, step.node, complain);
		if (queue.fd < 0)
			(void)sy_queue_open(&queue, &control);
		sy_queue_send(&queue, "leave");
		/* Steps may still come to a sampler that measures others. Without an extern step
		 * the next one starts its own. */
		if (!step.extern_step || queue.fd < 0)
			(void)unlink(control.sun_path);
		if (queue.fd < 0)
			finalize_record_of_dead_sampler();
	}
	sy_queue_drain(&queue, LAST_WORDS_MS);
	sy_queue_close(&queue);
	/* It may wait for the job's last processes. */
	if (step.extern_step)
		sy_conditions_remove_leftovers(&config, &step);
}
