/* `sacctmgr modify job` cannot: it turns every quote into a backtick, and up to 22.05 every letter
 * into a small one. */
#include "slurmdb.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>

#include "base/file.h"
#include "job/comment.h"

/* Where an administrator may set a job's TRES. */
#define SETS_ENERGY (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0))

/* libslurm exports it; slurmdb.h does not say so. */
extern slurmdb_job_rec_t *slurmdb_create_job_rec(void);

static uint32_t read_number(const json_t *request, const char *name)
{
	const json_t *value = json_object_get(request, name);

	return json_is_integer(value) ? (uint32_t)json_integer_value(value) : NO_VAL;
}

static void select_job(slurmdb_job_cond_t *which, const json_t *request, slurm_selected_step_t *job)
{
	*job = (slurm_selected_step_t){.array_task_id = read_number(request, "array_task_id"),
				       .het_job_offset = NO_VAL};
	job->step_id.job_id = read_number(request, "job_id");
	job->step_id.step_id = NO_VAL;
	job->step_id.step_het_comp = NO_VAL;
	/* Otherwise the first component's id represents all of them. */
	*which = (slurmdb_job_cond_t){.flags = JOBCOND_FLAG_NO_DEFAULT_USAGE |
					       JOBCOND_FLAG_NO_WHOLE_HETJOB | JOBCOND_FLAG_NO_STEP,
				      .db_flags = SLURMDB_JOB_FLAG_NOTSET,
				      .step_list = slurm_list_create(NULL),
				      .cluster_list = slurm_list_create(NULL)};
	slurm_list_append(which->step_list, job);
	slurm_list_append(which->cluster_list,
			  (void *)json_string_value(json_object_get(request, "cluster")));
}

static json_t *make_error(const char *sentence)
{
	return json_pack("{s:s}", "error", sentence);
}

/* Its comment as it is, to be freed, in `*present`. NULL, or the answer where nothing may be
 * written. Ids come again: after the highest, after a lost state, at each requeue. */
static json_t *read_present(void *connection, slurmdb_job_cond_t *which, const json_t *request,
			    char **present)
{
	const json_t *submit = json_object_get(request, "submit_unix_s");
	slurmdb_job_rec_t *job;
	json_t *answer = NULL;

	errno = 0;
	__auto_type found = slurmdb_jobs_get(connection, which);
	if (!found)
		return make_error(errno ? slurm_strerror(errno) : "slurmdbd does not answer");
	__auto_type each = slurm_list_iterator_create(found);
	while ((job = slurm_list_next(each)))
		if (json_is_integer(submit) &&
		    (json_int_t)job->submit != json_integer_value(submit))
			answer =
			    answer
				?: make_error("another start, or another job, has this id by now");
		else if (job->admin_comment)
			*present = *present ?: strdup(job->admin_comment);
	slurm_list_iterator_destroy(each);
	if (!answer && slurm_list_count(found) == 0)
		answer = make_error("slurmdbd knows no such job");
	if (!answer && slurm_list_count(found) > 1)
		answer = make_error("it would have been written to several jobs");
	slurm_list_destroy(found);
	return answer;
}

/* TRES as Slurm numbers them: energy is 3 everywhere (slurmdb_common.h, TRES_ENERGY). */
static bool put_energy(const json_t *request, slurmdb_job_rec_t *job, char *text, size_t size)
{
	const json_t *joules = json_object_get(request, "energy_j");

	if (!json_is_integer(joules))
		return true;
	(void)snprintf(text, size, "3=%" JSON_INTEGER_FORMAT, json_integer_value(joules));
	job->tres_alloc_str = text;
	return SETS_ENERGY;
}

/* What `job` has is written to all of them, which is one. */
static json_t *write_job(void *connection, slurmdb_job_cond_t *which, slurmdb_job_rec_t *job)
{
	json_t *answer;

	errno = 0;
	__auto_type changed = slurmdb_job_modify(connection, which, job);
	if (!changed || slurm_list_count(changed) == 0)
		answer = make_error(errno ? slurm_strerror(errno) : "slurmdbd knows no such job");
	else if (slurm_list_count(changed) > 1) {
		(void)slurmdb_connection_commit(connection, false);
		answer = make_error("it would have been written to several jobs");
	} else if (slurmdb_connection_commit(connection, true) != SLURM_SUCCESS)
		answer = make_error(slurm_strerror(errno));
	else
		answer = json_pack("{s:i}", "modified", 1);
	if (changed)
		slurm_list_destroy(changed);
	return answer;
}

static json_t *modify(void *connection, slurmdb_job_cond_t *which, const json_t *request)
{
	const char *own = json_string_value(json_object_get(request, "own")),
		   *unchanged_reason = NULL;
	cleanup_free char *present = NULL, *merged = NULL;
	json_t *answer = read_present(connection, which, request, &present);
	slurmdb_job_rec_t *job;
	char tres[64];

	if (answer)
		return answer;
	if (own)
		merged = sy_comment_merge(present, own, &unchanged_reason);
	if (merged)
		unchanged_reason = NULL;
	job = slurmdb_create_job_rec();
	if (merged && (!present || strcmp(present, merged) != 0))
		job->admin_comment = merged;
	if (!put_energy(request, job, tres, sizeof(tres)))
		answer =
		    make_error("this release of Slurm sets no job's energy: 25.11 and later do");
	else if (job->admin_comment || job->tres_alloc_str)
		answer = write_job(connection, which, job);
	else
		answer = json_pack("{s:i}", "modified", 0);
	if (unchanged_reason)
		(void)json_object_set_new(answer, "unchanged", json_string(unchanged_reason));
	/* They are ours, and not Slurm's to free. */
	job->admin_comment = job->tres_alloc_str = NULL;
	slurmdb_destroy_job_rec(job);
	return answer;
}

static json_t *run_request(void *connection, const char *line)
{
	json_t *request = json_loads(line, 0, NULL), *answer;
	slurm_selected_step_t selected;
	slurmdb_job_cond_t which;

	if (read_number(request, "job_id") == NO_VAL ||
	    !json_is_string(json_object_get(request, "cluster"))) {
		json_decref(request);
		return make_error("no job is named");
	}
	select_job(&which, request, &selected);
	answer = modify(connection, &which, request);
	slurm_list_destroy(which.step_list);
	slurm_list_destroy(which.cluster_list);
	json_decref(request);
	return answer;
}

/* The connection is made at the first query, and each query waits up to 20 s. */
static bool can_connect(void *connection)
{
	slurmdb_cluster_cond_t every = {.classification = 0};

	slurmdb_init_cluster_cond(&every, false);
	__auto_type clusters = slurmdb_clusters_get(connection, &every);
	if (clusters)
		slurm_list_destroy(clusters);
	return clusters != NULL;
}

int sy_publish(void)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	uint16_t flags = 0;
	void *connection;

	slurm_init(NULL);
	connection = slurmdb_connection_get(&flags);
	if (!connection || !can_connect(connection)) {
		(void)fprintf(stderr, "steelyard-slurmdb: slurmdbd does not answer\n");
		return SY_SLURMDB_MISSING;
	}
	while (getline(&line, &size, stdin) > 0) {
		json_t *answer = run_request(connection, line);
		cleanup_free char *text = json_dumps(answer, JSON_COMPACT);

		(void)puts(text ? text : "{\"error\":\"no memory\"}");
		json_decref(answer);
	}
	(void)slurmdb_connection_close(&connection);
	return 0;
}
