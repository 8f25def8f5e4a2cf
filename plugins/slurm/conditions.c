#include "conditions.h"

#include "base/clock.h"
#include "base/file.h"
#include "job/conditions.h"
#include "job/container_leftovers.h"
#include "job_cgroup.h"
#include "netem/spec/spec.h"
#include "options.h"
#include "sampler_launch.h"
#include "slurmctld_query.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SITES_PEERS 16 /* of the job: one of them may be at each site */
/* Of all conditions of a step together, below Slurm's UnkillableStepTimeout (60 s) with what else
 * its start may wait for. */
#define LIMIT_MS       40000
#define EXIT_CONDITION 4 /* docs: a condition could not be applied */

#define NO_EXTERN_STEP                                                                             \
	"the job has no extern step on this node, whose end would end this as well: slurm.conf "   \
	"needs PrologFlags=Contain"

static char refusal[1024];	     /* "": none */
static char join_path[SY_PATH_SIZE]; /* cgroup.procs of the job's shaped traffic; "": none */
static char canonical[SY_NETEM_SIZE];

static void mark_path(char *path, size_t size, const struct sy_config *config,
		      const struct sy_step *step)
{
	(void)snprintf(path, size, "%s/%s.%u.cold", config->node.run_dir, step->node, step->job_id);
}

/* Locked: another step waits until the caches are dropped, else it would begin with warm ones. */
static int open_mark(const struct sy_config *config, const struct sy_step *step, int64_t until_ms,
		     struct sy_error *err)
{
	char path[2 * SY_PATH_SIZE];
	int fd, limit_ms;

	mark_path(path, sizeof(path), config, step);
	fd = open(path, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open %s", path);
	limit_ms = sy_command_limit_ms(until_ms, SY_COLD_LIMIT_MS);
	if (sy_lock(fd, limit_ms))
		return fd;
	(void)close(fd);
	return sy_fail(err, "another step of the job has been dropping caches for %d s",
		       limit_ms / 1000);
}

void sy_cold_cache_forget(const struct sy_config *config, const struct sy_step *step)
{
	char path[2 * SY_PATH_SIZE];

	mark_path(path, sizeof(path), config, step);
	(void)unlink(path);
}

/* --cache=cold, once on a node, before the job's first step there: drop the caches if the policy
 * allows it to the user and no other step of the job has done it, and send the result to the
 * sampler. A refused request is repeated by the next step. `until_ms`: as of struct sy_command_job.
 */
static int make_cache_cold(const struct sy_config *config, const struct sy_step *step,
			   const struct sy_job_facts *facts, int64_t until_ms,
			   struct sy_message_queue *queue, struct sy_error *err)
{
	cleanup_close int mark = open_mark(config, step, until_ms, err);
	char done;
	struct sy_command_job job = sy_slurm_command_job(config, step, facts);

	if (mark < 0)
		return -1;
	if (read(mark, &done, 1) == 1)
		return 0;
	job.until_ms = until_ms;
	if (sy_conditions_drop_caches(&job, sy_options.cvmfs_mb, queue, err) < 0)
		return -1;
	if (write(mark, "1", 1) != 1)
		return sy_fail_errno(err, errno, "cannot note that caches were dropped");
	return 0;
}

static void refuse(const char *option, const char *sentence)
{
	if (refusal[0])
		return;
	(void)snprintf(refusal, sizeof(refusal), "%s%s%s", option, *option ? ": " : "", sentence);
	for (char *c = refusal; *c; c++) {
		if ((unsigned char)*c < ' ')
			*c = '?';
	}
	slurm_error("steelyard: %s", refusal);
}

static void refuse_netem(const char *sentence)
{
	char option[SY_NETEM_SIZE + 16];

	(void)snprintf(option, sizeof(option), "--netem=%s", canonical);
	refuse(option, sentence);
}

static int apply(const struct sy_config *config, const struct sy_step *step,
		 const struct sy_job_facts *facts, pid_t watch, int64_t until_ms,
		 struct sy_error *err)
{
	char cgroup[SY_PATH_SIZE], peer[SY_ADDRESS_SIZE];
	struct sy_command_job job = sy_slurm_command_job(config, step, facts);
	struct sy_shape_request request = {
	    .text = canonical, .watch = watch, .peer = peer, .protect = &facts->protect};

	job.until_ms = until_ms;
	if (sy_options.netem.has_sites)
		request.peers = &facts->peers;

	if (!facts->has_whole_host) /* "/": it has none, and one is made for its tasks to join */
		request.cgroup =
		    sy_job_cgroup_read("self", step->job_id, cgroup, sizeof(cgroup)) ? cgroup : "/";
	(void)snprintf(peer, sizeof(peer), "%s", facts->peers.count ? facts->peers.text[0] : "");
	sy_find_peer(&sy_options.netem, peer);
	return sy_conditions_shape(&job, &request, join_path, err);
}

/* `none` touches nothing, and so needs nobody's permission. */
static void start_none(const struct sy_config *config, const struct sy_step *step,
		       struct sy_message_queue *queue)
{
	struct sy_command_job job = sy_slurm_command_job(config, step, NULL);

	if (sy_has_conditions(&job))
		refuse_netem("this job has its network conditions on this node already; one job, "
			     "one set of conditions");
	else
		sy_queue_send(queue, "tag network=none");
}

static void start_netem(const struct sy_config *config, const struct sy_step *step,
			const struct sy_job_facts *facts, int64_t until_ms)
{
	struct sy_error err;
	pid_t watch = sy_step_extern_pid(step);

	if (watch == 0)
		refuse_netem(NO_EXTERN_STEP);
	else if (sy_refuse_scheduler(&sy_options.netem, &facts->protect, SY_SLURM_DAEMONS, &err) <
		     0 ||
		 apply(config, step, facts, watch, until_ms, &err) < 0)
		refuse_netem(err.text);
}

static void try_conditions(spank_t spank, const struct sy_config *config,
			   const struct sy_step *step, struct sy_message_queue *queue)
{
	static struct sy_job_facts facts;
	struct sy_error err;
	bool shapes = sy_options.has_netem && !sy_options.netem.none;
	bool cold = sy_options.cache == SY_CACHE_COLD;
	int64_t until_ms = sy_now_ms(CLOCK_MONOTONIC) + LIMIT_MS;
	int peers = sy_options.netem.has_sites ? SITES_PEERS : 1;

	if (sy_job_facts_get(spank, step, peers, &facts, &err) < 0) {
		refuse(shapes ? "--netem" : "--cache=cold", err.text);
		return;
	}
	if (shapes)
		start_netem(config, step, &facts, until_ms);
	if (cold && !refusal[0] && make_cache_cold(config, step, &facts, until_ms, queue, &err) < 0)
		refuse("--cache=cold", err.text);
}

void sy_conditions_start(spank_t spank, const struct sy_config *config, const struct sy_step *step,
			 struct sy_message_queue *queue)
{
	if (sy_options.has_netem)
		(void)sy_netem_format(&sy_options.netem, canonical);
	if (sy_options.fault[0])
		refuse("", sy_options.fault);
	else if (canonical[0] && sy_options.netem.none)
		start_none(config, step, queue);
	sy_report_unmet_conditions(&sy_options, "asked for, not in place yet", NULL, queue);
	if (!sy_options.fault[0] && sy_user_options_change_node(&sy_options))
		try_conditions(spank, config, step, queue);
	if (refusal[0])
		sy_report_unmet_conditions(&sy_options, "refused", refusal, queue);
}

void sy_conditions_join(void)
{
	const pid_t task = getpid();
	struct sy_error err;

	if (!refusal[0] && join_path[0] && sy_join_cgroup(&task, 1, join_path, &err) < 0)
		refuse("--netem", err.text);
}

void sy_conditions_enforce(spank_t spank)
{
	static const char mark[] = "steelyard: ";
	uint32_t task = 0;

	if (!refusal[0])
		return;
	(void)spank_get_item(spank, S_TASK_ID, &task);
	if (task == 0) {
		char line[sizeof(refusal) + sizeof(mark)];
		int length = snprintf(line, sizeof(line), "%s%s\n", mark, refusal);

		(void)sy_write_all(STDERR_FILENO, line, (size_t)length);
	}
	_exit(EXIT_CONDITION);
}

const char *sy_conditions_netem(void)
{
	return canonical[0] ? canonical : NULL;
}

const char *sy_conditions_refusal(void)
{
	return refusal[0] ? refusal : NULL;
}

void sy_conditions_end(const struct sy_config *config, const struct sy_step *step)
{
	struct sy_command_job job = sy_slurm_command_job(config, step, NULL);
	struct sy_error err;

	sy_cold_cache_forget(config, step);
	if (sy_conditions_finish(&job, "job", &err) < 0)
		slurm_error("steelyard: network conditions not undone yet: %s", err.text);
}

void sy_conditions_reap(const struct sy_config *config, const char *by)
{
	struct sy_command_job job = {.program = sy_slurm_program(config)};
	struct sy_error err;

	if (sy_conditions_undo_stale(&job, by, &err) < 0)
		slurm_error("steelyard: network conditions of dead jobs not undone: %s", err.text);
	sy_leftovers_sweep(&job.program);
}

static void log_leftover(const char *line)
{
	slurm_info("steelyard: %s", line);
}

void sy_conditions_remove_leftovers(const struct sy_config *config, const struct sy_step *step)
{
	struct sy_node_program program = sy_slurm_program(config);

	sy_leftovers_remove(&program, step->id, step->uid, log_leftover);
}
