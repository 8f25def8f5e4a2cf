#include "record/conditions.h"

#include "base/document.h"
#include "base/file.h"
#include "capture/file.h"
#include "netem/end.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS	 2000 /* for a capture that is being closed */
#define PAUSE_MS 20

/* RUN_DIR/KIND/NODE.JOB.ENDING; names were checked to be words of files. */
static void name_of(char *path, size_t size, const struct sy_sampling *sampling, const char *kind,
		    const char *ending)
{
	(void)snprintf(path, size, "%s/%s/%s.%s.%s", sampling->run_dir, kind, sampling->node,
		       sampling->job_id, ending);
}

static bool is_there(const struct sy_sampling *sampling, const char *kind, const char *ending)
{
	char path[4096];

	name_of(path, sizeof(path), sampling, kind, ending);
	return access(path, F_OK) == 0;
}

static bool goes_on(const struct sy_sampling *sampling, const char *kind)
{
	return is_there(sampling, kind, "json");
}

/* The finished document, which then is gone; NULL: there is none. */
static json_t *take_capture(const struct sy_sampling *sampling)
{
	char path[4096];
	cleanup_close int fd = -1;
	json_t *document;

	name_of(path, sizeof(path), sampling, "capture", "done.json");
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	document = sy_json_read_fd(fd);
	if (document)
		(void)unlink(path);
	return document;
}

static json_t *wait_for_capture(const struct sy_sampling *sampling)
{
	const struct timespec pause = {0, PAUSE_MS * 1000000};
	json_t *document = take_capture(sampling);

	for (int waited = 0; !document && waited < WAIT_MS && goes_on(sampling, "capture");
	     waited += PAUSE_MS) {
		(void)nanosleep(&pause, NULL);
		document = take_capture(sampling);
	}
	return document ? document : take_capture(sampling);
}

/* Whoever runs the job undoes its conditions; where he was killed, it is us. */
static const char *finish(const struct sy_sampling *sampling, struct sy_error *err)
{
	if (goes_on(sampling, "netem") && sy_netem_finish(sampling->run_dir, sampling->node,
							  sampling->job_id, "sampler", err) < 0)
		return err->text;
	return is_there(sampling, "netem", "done.json")
		   ? "the finished document could not be taken"
		   : sy_record_unmet(sampling, "network_conditions", "none were asked for");
}

/* `network` among the tags is what was asked for, as it stands in a study. */
static void put_network(json_t *record, const struct sy_sampling *sampling)
{
	struct sy_error err;
	const char *why = finish(sampling, &err);
	json_t *conditions = sy_netem_take(sampling->run_dir, sampling->node, sampling->job_id);
	json_t *requested = json_object_get(conditions, "requested");

	if (requested)
		(void)json_object_set(json_object_get(record, "tags"), "network", requested);
	sy_record_put(record, "network_conditions", conditions, why);
}

void sy_record_recover_conditions(json_t *record, const struct sy_sampling *sampling)
{
	json_t *capture;

	if (goes_on(sampling, "netem") || is_there(sampling, "netem", "done.json"))
		put_network(record, sampling);
	capture = take_capture(sampling);
	if (capture)
		sy_record_put(record, "capture", capture, NULL);
}

void sy_record_conditions(json_t *record, const struct sy_sampling *sampling)
{
	json_t *capture;

	if (!sampling->run_dir)
		return;
	sy_capture_stop(sampling->run_dir, sampling->node,
			sampling->job_id); /* before echoes of our own */
	put_network(record, sampling);
	capture = wait_for_capture(sampling);
	sy_record_put(record, "capture", capture,
		      goes_on(sampling, "capture")
			  ? "the capture had not been closed 2 s after the end"
			  : sy_record_unmet(sampling, "capture", "none was asked for"));
}
