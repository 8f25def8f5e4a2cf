/* A job's conditions of the network, copied into the record at its end. */
#include "record/record.h"

#include "base/json_document.h"
#include "netem/netem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether RUN_DIR/netem/NODE.JOB.ENDING exists; names were checked to be words of files. */
static bool has_state(const struct sy_sampling *sampling, const char *ending)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/netem/%s.%s.%s", sampling->run_dir, sampling->node,
		       sampling->job_id, ending);
	return access(path, F_OK) == 0;
}

/* The job's runner undoes its conditions; if it was killed, the sampler does. */
static const char *finish(const struct sy_sampling *sampling, struct sy_error *err)
{
	if (has_state(sampling, "json") && sy_netem_finish(sampling->run_dir, sampling->node,
							   sampling->job_id, "sampler", err) < 0)
		return err->text;
	return has_state(sampling, "done.json")
		   ? "the finished document could not be taken"
		   : sy_record_unmet(sampling, "network_conditions", "none were asked for");
}

/* `network` among the tags is the requested specification as a study has it. */
static void put_network(json_t *record, const struct sy_sampling *sampling)
{
	struct sy_error err;
	const char *reason = finish(sampling, &err);
	json_t *conditions =
	    sy_netem_consume_document(sampling->run_dir, sampling->node, sampling->job_id);
	json_t *requested = json_object_get(conditions, "requested");

	if (requested)
		(void)json_object_set(json_object_get(record, "tags"), "network", requested);
	sy_json_put(record, "network_conditions", conditions, reason);
}

void sy_record_recover_conditions(json_t *record, const struct sy_sampling *sampling)
{
	if (has_state(sampling, "json") || has_state(sampling, "done.json"))
		put_network(record, sampling);
}

void sy_record_conditions(json_t *record, const struct sy_sampling *sampling)
{
	if (sampling->run_dir)
		put_network(record, sampling);
}

#define CONTAINERS                                                                                 \
	"on a shared node what the job's own containers send through a network namespace of "      \
	"theirs is not shaped"

void sy_record_unshaped(json_t *record, const struct sy_status *status)
{
	json_t *conditions = json_object_get(record, "network_conditions");
	const char *scope = json_string_value(json_object_get(conditions, "scope"));

	if (!scope || strcmp(scope, "job") != 0)
		return;
	if (!status->other_networks) {
		if (!status->networks_known)
			sy_json_note(conditions, "%s; whether it had any is not known", CONTAINERS);
		return;
	}
	if (!json_is_false(json_object_get(conditions, "valid")))
		(void)json_object_set_new(
		    conditions, "invalid_reason",
		    json_string(
			"a program of the job began in another network namespace: " CONTAINERS));
	(void)json_object_set_new(conditions, "valid", json_false());
}
