#include "finish.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "admin_comment.h"
#include "base/file.h"
#include "base/place.h"
#include "job/comment.h"
#include "job/record_folder.h"
#include "conditions.h"
#include "options.h"
#include "job/totals_files.h"

#define ANSWER_LIMIT_MS 2000 /* some ms, but on a node or a disk that is too busy */
#define FILES_LIMIT_MS	100
#define COMMENT_WAIT_MS 3000 /* some ms, but on a node that is too busy, or without slurmctld */
#define LATE_S		5    /* how long a sampler that lives may be late with its samples */
#define START_SPREAD_S	10 /* how much earlier than ours another node's sampler may have started */

bool sy_finish_is_due(const struct sy_step *step)
{
	return step->batch_step || (!step->batch_runs && step->node_index == 0);
}

static void find_kind(struct sy_node_kind *kind, const char *folder, const char *node, time_t start)
{
	cleanup_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[300];
	cleanup_free char *text = NULL;

	*kind = (struct sy_node_kind){0};
	(void)snprintf(name, sizeof(name), "%s.%lld.json", node, (long long)start);
	text = fd < 0 ? NULL : sy_read_record(fd, name);
	if (text)
		sy_node_kind_from_record(kind, text);
}

/* By the clock of the file system and of the other nodes, for ours may have been set, or be wrong:
 * our own sampler has just written, when it has answered, and says how long ago it has begun. */
static struct sy_other_nodes others_of(const char *folder, const struct sy_finish *finish,
				       const struct sy_totals *own, time_t start)
{
	struct sy_other_nodes others = {.folder = folder,
					.own_node = finish->step->node,
					.own_start = start,
					.fresh = time(NULL),
					.limit_ms = FILES_LIMIT_MS};
	char path[SY_RECORD_PATH_SIZE + 320];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s.%lld.csv", folder, others.own_node,
		       (long long)start);
	if (stat(path, &st) == 0 && own->known[SY_ELAPSED_S]) {
		others.own_start = sy_begun_at(start, st.st_mtime, own->value[SY_ELAPSED_S]);
		others.fresh = st.st_mtime;
	}
	others.since = others.own_start - START_SPREAD_S;
	/* A sampler that lives has written two of its periods ago at the latest. */
	others.fresh -= LATE_S + (finish->rate_hz > 0 ? (time_t)(2 / finish->rate_hz) : 0);
	return others;
}

static void gather(struct sy_job_totals *job, const struct sy_finish *finish,
		   const struct sy_totals *own, const char *job_id, const char *folder,
		   time_t start)
{
	struct sy_other_nodes others = others_of(folder, finish, own, start);
	char path[SY_RECORD_PATH_SIZE], before[SY_RECORD_PATH_SIZE] = "";

	if (!job->silent)
		sy_job_totals_add(job, own);
	/* Their samplers may have started on the other side of midnight. Where that day has no
	 * folder of the job, the path is that of the flat layout: once is enough. */
	for (int day = -1; day <= 1 && start > 0; day++) {
		sy_record_folder(path, finish->config->record_dir, job_id,
				 start + (time_t)day * SY_DAY_S);
		others.folder = path;
		if (day == 0 || (strcmp(path, folder) != 0 && strcmp(path, before) != 0))
			sy_job_totals_add_others(job, &others);
		if (day < 0)
			(void)snprintf(before, sizeof(before), "%s", path);
	}
}

/* The last sample would be some of the totals, and nothing would say so. */
static bool ask_sampler(const struct sy_finish *finish, struct sy_totals *own)
{
	char answer[4096];

	*own = (struct sy_totals){0};
	if (sy_outbox_ask(finish->outbox, answer, sizeof(answer), ANSWER_LIMIT_MS) <= 0 ||
	    !sy_totals_from_json(own, answer))
		return false;
	own->exclusive = finish->exclusive;
	return true;
}

/* -1: nothing measured yet is nothing to be valid. */
void sy_finish_begin(spank_t spank, const struct sy_config *config, const struct sy_step *step)
{
	static const struct sy_job_totals nothing;
	struct sy_comment comment = {.tags = &sy_options.tags,
				     .totals = &nothing,
				     .nodes = sy_step_nodes_of_job(spank),
				     .netem = sy_conditions_netem(),
				     .netem_valid = -1,
				     .refused = sy_conditions_refusal()};
	cleanup_free char *text = sy_comment_short(&comment);

	if (text)
		sy_admin_comment_write_later(config, step, text);
}

void sy_finish(spank_t spank, const struct sy_finish *finish)
{
	const struct sy_config *config = finish->config;
	const struct sy_step *step = finish->step;
	char folder[SY_RECORD_PATH_SIZE], job_id[32];
	struct sy_job_totals totals = {0};
	struct sy_totals own;
	struct sy_comment comment = {.tags = &sy_options.tags,
				     .totals = &totals,
				     .nodes = sy_step_nodes_of_job(spank),
				     .netem = sy_conditions_netem(),
				     .netem_valid = sy_conditions_valid(config, step),
				     .refused = sy_conditions_refusal()};
	cleanup_free char *text = NULL;
	time_t start;

	(void)snprintf(job_id, sizeof(job_id), "%u", step->job_id);
	totals.silent = !ask_sampler(finish, &own);
	start = own.start ? own.start : sy_record_newest(config->record_dir, job_id, step->node);
	sy_record_folder(folder, config->record_dir, job_id, start);
	gather(&totals, finish, &own, job_id, folder, start);
	find_kind(&comment.kind, folder, step->node, start);
	text = sy_comment_short(&comment);
	if (text)
		sy_admin_comment_write(config, step, text, COMMENT_WAIT_MS);
}
