#include "finish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "comment.h"
#include "conditions.h"
#include "file.h"
#include "options.h"
#include "release.h"

#define ANSWER_LIMIT_MS 50
#define FILES_LIMIT_MS	100
#define RECORD_MAX	1048576 /* bytes */
#define LAST_SAMPLE_S	5	/* older than this it may be one of the job's start before */
#define START_SPREAD_S	10 /* how much earlier than ours another node's sampler may have started */

bool sy_finish_is_due(const struct sy_step *step)
{
	return step->batch_step || (!step->batch_runs && step->node_index == 0);
}

/* The file belongs to the job's user, the folder to root: no link, no pipe, a bounded size. */
static char *read_record(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > RECORD_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (text && sy_read_fd(fd, text, (size_t)st.st_size + 1) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void find_kind(struct sy_node_kind *kind, const char *folder, const char *node, time_t start)
{
	char path[2 * SY_PATH_SIZE];
	cleanup_free char *text = NULL;

	*kind = (struct sy_node_kind){0};
	(void)snprintf(path, sizeof(path), "%s/%s.%lld.json", folder, node, (long long)start);
	text = read_record(path);
	if (text)
		sy_node_kind_from_record(kind, text);
}

/* With --sample-rate=0 the sampler answers, but knows nothing: such a node is not weighed. */
static bool knows_something(const struct sy_totals *totals)
{
	for (int i = 0; i < SY_TOTALS; i++) {
		if (totals->known[i])
			return true;
	}
	return false;
}

/* The sampler's last line: as old as its period, when it has no time to answer or is gone. */
static bool last_sample(struct sy_totals *totals, const char *folder, const char *node,
			time_t start)
{
	cleanup_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	char name[300];

	(void)snprintf(name, sizeof(name), "%s.%lld.csv", node, (long long)start);
	return fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtime >= time(NULL) - LAST_SAMPLE_S &&
	       sy_totals_from_csv_file(totals, fd, name);
}

static bool own_totals(struct sy_totals *own, const char *folder, const struct sy_step *step,
		       time_t start, struct sy_outbox *outbox)
{
	char answer[4096];

	if (sy_outbox_ask(outbox, "totals", answer, sizeof(answer), ANSWER_LIMIT_MS) > 0)
		return sy_totals_from_json(own, answer) && knows_something(own);
	return last_sample(own, folder, step->node, start);
}

static void gather(struct sy_job_totals *job, const char *folder, const struct sy_step *step,
		   time_t start, struct sy_outbox *outbox)
{
	struct sy_totals own;

	*job = (struct sy_job_totals){0};
	if (own_totals(&own, folder, step, start, outbox))
		sy_job_totals_add(job, &own);
	if (start > 0)
		sy_job_totals_add_others(job, folder, step->node, start - START_SPREAD_S,
					 FILES_LIMIT_MS);
}

static void write_comment(const struct sy_step *step, char *text)
{
	job_desc_msg_t update;

	slurm_init_job_desc_msg(&update);
	/* By number: a name like "2" would stand for all tasks of array 2. */
	SY_JOB_ID_OF(&update) = step->job_id;
	update.admin_comment = text;
	if (slurm_update_job(&update) != SLURM_SUCCESS)
		slurm_verbose("steelyard: AdminComment of job %u not written: %s", step->job_id,
			      slurm_strerror(errno));
}

static long nodes_of_job(spank_t spank)
{
	char nodes[32];

	return sy_step_variable(spank, "SLURM_JOB_NUM_NODES", nodes, sizeof(nodes))
		   ? strtol(nodes, NULL, 10)
		   : -1;
}

/* -1: nothing measured yet is nothing to be valid. */
void sy_finish_begin(spank_t spank, const struct sy_step *step)
{
	static const struct sy_job_totals nothing;
	struct sy_comment comment = {.tags = &sy_options.tags,
				     .totals = &nothing,
				     .nodes = nodes_of_job(spank),
				     .netem = sy_conditions_netem(),
				     .netem_valid = -1};
	cleanup_free char *text = sy_comment_text(&comment);

	if (text)
		write_comment(step, text);
}

void sy_finish(spank_t spank, const struct sy_config *config, const struct sy_step *step,
	       struct sy_outbox *outbox)
{
	char folder[SY_PATH_SIZE + 32];
	struct sy_job_totals totals;
	struct sy_comment comment = {.tags = &sy_options.tags,
				     .totals = &totals,
				     .nodes = nodes_of_job(spank),
				     .netem = sy_conditions_netem(),
				     .netem_valid = sy_conditions_valid(config, step)};
	cleanup_free char *text = NULL;
	time_t start;

	(void)snprintf(folder, sizeof(folder), "%s/%u", config->record_dir, step->job_id);
	start = sy_newest_start(folder, step->node, ".json");
	gather(&totals, folder, step, start, outbox);
	find_kind(&comment.kind, folder, step->node, start);
	text = sy_comment_text(&comment);
	if (text)
		write_comment(step, text);
}
