#include "admin_comment.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>

#include "aside.h"
#include "base/file.h"
#include "job/comment_merge.h"
#include "job/run_dir.h"
#include "release.h"

#define LIMIT_S 60 /* of all tries */
#define TRIES	4
#define LATER_S 2
#define SAID	256
#define SENT	"s" /* told when slurmctld is asked: from then on it takes its time, not ours */
/* 22.05 looks again after a second when it is just telling slurmdbd of the job. */
#define SENT_MS 1200

/* What became of it. It is told as one letter and a sentence: one for the log, or for who wants to
 * know all. */
enum verdict { WRITTEN, AGAIN, OVER, LEFT };

struct what {
	const struct sy_step *step;
	const char *own;
	unsigned delay_s;
	int tell, complaints;
};

static struct sy_aside writer = {.fd = -1}; /* fd: -1: none is tried */

/* --- in a process of its own ------------------------------------------------------------------ */

/* Of an array's last task Slurm tells all tasks. */
static const job_info_t *find(const job_info_msg_t *found, uint32_t job_id)
{
	for (uint32_t i = 0; found && i < found->record_count; i++)
		if (SY_JOB_ID_OF(&found->job_array[i]) == job_id)
			return &found->job_array[i];
	return NULL;
}

static enum verdict refused(char *said)
{
	int number = errno;

	(void)snprintf(said, SAID, "%s", slurm_strerror(number));
	return number == ESLURM_ALREADY_DONE || number == ESLURM_JOB_FINISHED ||
		       number == ESLURM_INVALID_JOB_ID
		   ? OVER
		   : AGAIN;
}

static enum verdict put(const struct what *what, const char *present, char *said)
{
	job_desc_msg_t update;
	const char *why;
	cleanup_free char *text = sy_comment_merge(present, what->own, &why);

	if (!text) {
		(void)snprintf(said, SAID, "left as it is: %s", why);
		return LEFT;
	}
	if (present && strcmp(present, text) == 0)
		return WRITTEN;
	/* A step that has ended meanwhile has written more. */
	if (!what->step->batch_step && sy_comment_is_later(present, what->own))
		return WRITTEN;
	slurm_init_job_desc_msg(&update);
	/* By number: a name like "2" would stand for all tasks of array 2. */
	SY_JOB_ID_OF(&update) = what->step->job_id;
	update.admin_comment = text;
	(void)!write(what->tell, SENT, 1);
	return slurm_update_job(&update) == SLURM_SUCCESS ? WRITTEN : refused(said);
}

/* A job that is over is not asked about: slurmctld would log an error. */
static enum verdict try_once(const struct what *what, char *said)
{
	job_info_msg_t *found = NULL;
	const job_info_t *job;
	enum verdict verdict;

	if (sy_load_job(&found, what->step->job_id, SHOW_LOCAL | SHOW_ALL) != SLURM_SUCCESS)
		return refused(said);
	job = find(found, what->step->job_id);
	if (!job || (job->job_state & JOB_STATE_BASE) > JOB_SUSPENDED)
		verdict = OVER;
	else
		verdict = put(what, job->admin_comment, said);
	slurm_free_job_info_msg(found);
	return verdict;
}

static void tell(const struct what *what, char level, const char *sentence)
{
	char line[SAID + 128];
	int length = snprintf(line, sizeof(line), "%cAdminComment of job %u: %s\n", level,
			      what->step->job_id, sentence);

	/* Who started this has gone on: the next job on the node tells it. */
	if (write(what->tell, line, (size_t)length) < 0 && level == 'i')
		(void)!write(what->complaints, line + 1, (size_t)length - 1);
}

static void write_it(const struct what *what)
{
	char said[SAID] = "";
	enum verdict verdict;
	int tries = 1;

	if (what->delay_s)
		(void)sleep(what->delay_s);
	verdict = try_once(what, said);
	for (unsigned pause_s = 1; verdict == AGAIN && tries < TRIES; tries++, pause_s *= 3) {
		(void)sleep(pause_s);
		verdict = try_once(what, said);
	}
	if (verdict == LEFT)
		tell(what, 'i', said);
	else if (verdict == WRITTEN)
		tell(what, 'v', "written");
	else if (tries == 1)
		tell(what, 'v', "not written: the job is over");
	else {
		strncat(said, "; `steelyard publish` writes it", SAID - strlen(said) - 1);
		tell(what, 'i', said);
	}
}

static void write_aside(void *context, int tell_fd)
{
	struct what *what = context;

	what->tell = tell_fd;
	write_it(what);
}

/* --- in slurmstepd ---------------------------------------------------------------------------- */

static void log_line(char *line, size_t length)
{
	line[length - 1] = '\0'; /* in the newline's place */
	if (line[0] == 'i')
		slurm_info("steelyard: %s", line + 1);
	else
		slurm_verbose("steelyard: %s", line + 1);
}

/* What it has said, if it does within `wait_ms`, of which there are SENT_MS once slurmctld has been
 * asked; it may go on otherwise. */
static void hear(int wait_ms)
{
	struct pollfd ready = {.fd = writer.fd, .events = POLLIN};
	char line[SAID + 128];

	while (writer.fd >= 0 && poll(&ready, 1, wait_ms) > 0) {
		ssize_t got = read(writer.fd, line, sizeof(line) - 1);
		size_t sent;

		line[got > 0 ? got : 0] = '\0';
		sent = strspn(line, SENT);
		wait_ms = wait_ms < SENT_MS ? wait_ms : SENT_MS;
		if (got > 0 && !line[sent])
			continue;
		if (got > 0)
			log_line(line + sent, (size_t)got - sent);
		(void)close(writer.fd);
		writer.fd = -1;
	}
}

/* It must not come after what is to be written now. */
static void give_up_earlier(void)
{
	hear(0);
	if (writer.fd < 0)
		return;
	if (writer.pid > 0)
		(void)kill(writer.pid, SIGKILL);
	(void)close(writer.fd);
	writer.fd = -1;
}

bool sy_admin_comment_is_tried(void)
{
	hear(0);
	return writer.fd >= 0;
}

static void start_anew(struct what *what, const struct sy_config *config)
{
	cleanup_close int complaints = sy_complaints_open(config->run_dir, what->step->node);

	what->complaints = complaints;
	give_up_earlier();
	/* Whatever holds it up does not hold up the job. */
	sy_aside_start(
	    &writer,
	    &(struct sy_aside_work){
		.work = write_aside, .context = what, .keep = complaints, .limit_s = LIMIT_S},
	    SENT_MS);
}

void sy_admin_comment_write(const struct sy_config *config, const struct sy_step *step,
			    const char *own, int wait_ms)
{
	struct what what = {.step = step, .own = own};

	start_anew(&what, config);
	hear(wait_ms);
}

void sy_admin_comment_write_later(const struct sy_config *config, const struct sy_step *step,
				  const char *own)
{
	struct what what = {.step = step, .own = own, .delay_s = LATER_S};

	start_anew(&what, config);
}
