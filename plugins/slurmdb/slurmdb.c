/* `steelyard-slurmdb` (its help says what it does). `sacctmgr modify job` cannot: it turns every
 * quote into a backtick, and up to 22.05 every letter into a small one. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>

#include "base/file.h"

#define EXIT_USAGE   2
#define EXIT_MISSING 3
static const char help[] =
    "usage: steelyard-slurmdb <WISHES\n"
    "\n"
    "Writes AdminComment, and joules, of jobs that are over into Slurm's accounting, all over one\n"
    "connection. `steelyard publish` calls it.\n"
    "\n"
    "A line of JSON each on stdin: {\"cluster\": \"c\", \"job_id\": 7, \"array_task_id\": 1,\n"
    "\"submit_unix_s\": 5, \"admin_comment\": \"…\", \"energy_j\": 5}, the last four if there are "
    "any;\n"
    "a line on stdout for it: {\"modified\": 1}, or {\"error\": \"…\"}. Slurm writes to the last "
    "start\n"
    "of the last job of an id: where that was not submitted then, nothing is written. A component\n"
    "of a heterogeneous job is named by its own id. Exit code 3: slurmdbd does not answer.\n";

/* Where an administrator may set a job's TRES. */
#define SETS_ENERGY (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0))

/* libslurm exports it; slurmdb.h does not say so. */
extern slurmdb_job_rec_t *slurmdb_create_job_rec(void);

static uint32_t number(const json_t *wish, const char *name)
{
	const json_t *value = json_object_get(wish, name);

	return json_is_integer(value) ? (uint32_t)json_integer_value(value) : NO_VAL;
}

static void choose(slurmdb_job_cond_t *which, const json_t *wish, slurm_selected_step_t *job)
{
	*job = (slurm_selected_step_t){.array_task_id = number(wish, "array_task_id"),
				       .het_job_offset = NO_VAL};
	job->step_id.job_id = number(wish, "job_id");
	job->step_id.step_id = NO_VAL;
	job->step_id.step_het_comp = NO_VAL;
	/* Else the first component's id stands for all of them. */
	*which = (slurmdb_job_cond_t){.flags = JOBCOND_FLAG_NO_DEFAULT_USAGE |
					       JOBCOND_FLAG_NO_WHOLE_HETJOB,
				      .db_flags = SLURMDB_JOB_FLAG_NOTSET,
				      .step_list = slurm_list_create(NULL),
				      .cluster_list = slurm_list_create(NULL)};
	slurm_list_append(which->step_list, job);
	slurm_list_append(which->cluster_list,
			  (void *)json_string_value(json_object_get(wish, "cluster")));
}

/* Ids come again: after the highest, after a lost state, at each requeue. */
static bool is_meant(void *connection, slurmdb_job_cond_t *which, const json_t *wish)
{
	const json_t *submit = json_object_get(wish, "submit_unix_s");
	slurmdb_job_rec_t *job;
	bool fits = true;

	if (!json_is_integer(submit))
		return true;
	which->flags |= JOBCOND_FLAG_NO_STEP;
	__auto_type found = slurmdb_jobs_get(connection, which);
	if (!found)
		return true; /* what is wrong is told by who writes */
	__auto_type each = slurm_list_iterator_create(found);
	while ((job = slurm_list_next(each)))
		fits = fits && (json_int_t)job->submit == json_integer_value(submit);
	slurm_list_iterator_destroy(each);
	slurm_list_destroy(found);
	return fits;
}

static json_t *failed(const char *sentence)
{
	return json_pack("{s:s}", "error", sentence);
}

/* TRES as Slurm numbers them: energy is 3 everywhere (slurmdb_common.h, TRES_ENERGY). */
static bool put_energy(const json_t *wish, slurmdb_job_rec_t *job, char *text, size_t size)
{
	const json_t *joules = json_object_get(wish, "energy_j");

	if (!json_is_integer(joules))
		return true;
	(void)snprintf(text, size, "3=%" JSON_INTEGER_FORMAT, json_integer_value(joules));
	job->tres_alloc_str = text;
	return SETS_ENERGY;
}

static json_t *modify(void *connection, const json_t *wish)
{
	slurmdb_job_rec_t *job = slurmdb_create_job_rec();
	slurm_selected_step_t selected;
	slurmdb_job_cond_t which;
	char tres[64];
	json_t *answer;

	job->admin_comment = (char *)json_string_value(json_object_get(wish, "admin_comment"));
	if (!put_energy(wish, job, tres, sizeof(tres)))
		return failed("this release of Slurm sets no job's energy: 25.11 and later do");
	choose(&which, wish, &selected);
	errno = 0;
	bool meant = is_meant(connection, &which, wish);
	__auto_type changed = meant ? slurmdb_job_modify(connection, &which, job) : NULL;
	if (!meant)
		answer = failed("another start, or another job, has this id by now");
	else if (!changed || slurm_list_count(changed) == 0)
		answer = failed(errno ? slurm_strerror(errno) : "slurmdbd knows no such job");
	else if (slurm_list_count(changed) > 1) {
		(void)slurmdb_connection_commit(connection, false);
		return failed("it would have been written to several jobs");
	} else if (slurmdb_connection_commit(connection, true) != SLURM_SUCCESS)
		answer = failed(slurm_strerror(errno));
	else
		answer = json_pack("{s:i}", "modified", 1);
	if (changed)
		slurm_list_destroy(changed);
	slurm_list_destroy(which.step_list);
	slurm_list_destroy(which.cluster_list);
	/* Its strings are not its own: a few hundred bytes a job are left. */
	return answer;
}

static json_t *obey(void *connection, const char *line)
{
	json_t *wish = json_loads(line, 0, NULL), *answer;

	if (number(wish, "job_id") == NO_VAL || !json_is_string(json_object_get(wish, "cluster")))
		answer = failed("no job is named");
	else
		answer = modify(connection, wish);
	json_decref(wish);
	return answer;
}

/* A connection is made when something is asked, and each question waits for 20 s. */
static bool answers(void *connection)
{
	slurmdb_cluster_cond_t every = {.classification = 0};

	slurmdb_init_cluster_cond(&every, false);
	__auto_type clusters = slurmdb_clusters_get(connection, &every);
	if (clusters)
		slurm_list_destroy(clusters);
	return clusters != NULL;
}

int main(int argc, char **argv)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	uint16_t flags = 0;
	void *connection;

	if (argc > 1) {
		bool asked = !strcmp(argv[1], "--help");

		(void)fputs(help, asked ? stdout : stderr);
		return asked ? 0 : EXIT_USAGE;
	}
	slurm_init(NULL);
	connection = slurmdb_connection_get(&flags);
	if (!connection || !answers(connection)) {
		(void)fprintf(stderr, "steelyard-slurmdb: slurmdbd does not answer\n");
		return EXIT_MISSING;
	}
	while (getline(&line, &size, stdin) > 0) {
		json_t *answer = obey(connection, line);
		cleanup_free char *text = json_dumps(answer, JSON_COMPACT);

		(void)puts(text ? text : "{\"error\":\"no memory\"}");
		json_decref(answer);
	}
	(void)slurmdb_connection_close(&connection);
	return 0;
}
