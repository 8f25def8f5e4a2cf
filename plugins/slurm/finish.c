#include "finish.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "admin_comment.h"
#include "aside.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/place.h"
#include "job/comment.h"
#include "job/record_folder.h"
#include "conditions.h"
#include "options.h"
#include "job/totals_files.h"

#define ANSWER_LIMIT_MS 2000 /* some ms, but on a node or a disk that is too busy */
#define FILES_LIMIT_MS	100
#define FOLDER_WAIT_MS	1000 /* a file system that does not answer must not hold the job's end */
#define FOLDER_LIMIT_S	60
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

/* What the folder of records knows. */
struct found {
	struct sy_job_totals totals;
	struct sy_node_kind kind;
};

struct look {
	const struct sy_finish *finish;
	const struct sy_totals *own;
	struct found found;
};

/* In a process of its own: no other part of this file touches the folder of records. */
static void look_aside(void *context, int tell)
{
	struct look *look = context;
	const struct sy_finish *finish = look->finish;
	const char *record_dir = finish->config->record_dir;
	char folder[SY_RECORD_PATH_SIZE], job_id[32];
	time_t start = look->own->start;

	(void)snprintf(job_id, sizeof(job_id), "%u", finish->step->job_id);
	if (!start)
		start = sy_record_newest(record_dir, job_id, finish->step->node);
	sy_record_folder(folder, record_dir, job_id, start);
	gather(&look->found.totals, finish, look->own, job_id, folder, start);
	find_kind(&look->found.kind, folder, finish->step->node, start);
	(void)sy_write_all(tell, (const char *)&look->found, sizeof(look->found));
}

static bool hear(int fd, struct found *found, int wait_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + wait_ms, left;
	size_t length = 0;

	while (length < sizeof(*found) && (left = end - sy_now_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (poll(&ready, 1, (int)left) <= 0)
			continue;
		got = read(fd, (char *)found + length, sizeof(*found) - length);
		if (got <= 0)
			return false;
		length += (size_t)got;
	}
	return length == sizeof(*found);
}

/* Where the folder does not answer: this node's totals alone. `silent`: it has not told its own. */
static void look(struct found *found, const struct sy_finish *finish, const struct sy_totals *own,
		 bool silent)
{
	struct look look = {.finish = finish, .own = own, .found = {.totals = {.silent = silent}}};
	const struct sy_aside_work work = {
	    .work = look_aside, .context = &look, .keep = -1, .limit_s = FOLDER_LIMIT_S};
	struct sy_aside aside;
	bool heard;

	sy_aside_start(&aside, &work, FOLDER_WAIT_MS);
	heard = aside.fd >= 0 && hear(aside.fd, found, FOLDER_WAIT_MS);
	if (aside.fd >= 0)
		(void)close(aside.fd);
	if (heard)
		return;
	*found = look.found;
	if (!silent)
		sy_job_totals_add(&found->totals, own);
	/* Not slurm_error: that is written into the job's own output, too. */
	slurm_info(
	    "steelyard: the record folder %s has not answered within %d ms: AdminComment of job "
	    "%u has the totals of this node only",
	    finish->config->record_dir, FOLDER_WAIT_MS, finish->step->job_id);
}

void sy_finish(spank_t spank, const struct sy_finish *finish)
{
	const struct sy_config *config = finish->config;
	const struct sy_step *step = finish->step;
	struct found found;
	struct sy_totals own;
	bool silent = !ask_sampler(finish, &own);
	struct sy_comment comment = {.tags = &sy_options.tags,
				     .totals = &found.totals,
				     .nodes = sy_step_nodes_of_job(spank),
				     .netem = sy_conditions_netem(),
				     .netem_valid =
					 sy_conditions_valid(config, step, own.other_networks),
				     .refused = sy_conditions_refusal(),
				     .so_far = !step->batch_step};
	cleanup_free char *text = NULL;

	look(&found, finish, &own, silent);
	comment.kind = found.kind;
	text = sy_comment_short(&comment);
	if (text)
		sy_admin_comment_write(config, step, text, COMMENT_WAIT_MS);
}
