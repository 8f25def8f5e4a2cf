/* The records that wait in this node's spool. */
#include "doctor/doctor.h"

#include "base/file.h"
#include "record/record_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HAND_ON_S   3600 /* the spool's timer comes every five minutes */
#define RECORD_SIZE 65536
#define UNFINISHED  "\"end_unix_s\": null"
#define MOST	    100000 /* records that are counted */

/* Records in the spool. */
struct spool {
	int top;
	const char *job;
	long over, running;
	time_t oldest; /* of those that are over */
};

/* A record that cannot be read counts as finished: it exists, and its reader should be root. */
static bool is_running(int folder, const char *path)
{
	char text[RECORD_SIZE];
	cleanup_close int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && (sy_read_fd(fd, text, sizeof(text)) <= 0 || strstr(text, UNFINISHED));
}

static bool visit_file(void *context, const char *name)
{
	struct spool *spool = context;
	char path[2 * 256];
	struct stat info;

	(void)snprintf(path, sizeof(path), "%.255s/%.255s", spool->job, name);
	if (!sy_ends_with(name, ".json") ||
	    fstatat(spool->top, path, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
		return true;
	if (is_running(spool->top, path)) {
		spool->running++;
		return true;
	}
	if (!spool->over++ || info.st_mtime < spool->oldest)
		spool->oldest = info.st_mtime;
	return true;
}

static bool visit_job(void *context, const char *name)
{
	struct spool *spool = context;

	spool->job = name;
	sy_doctor_visit_names(spool->top, name, visit_file, spool);
	return spool->over + spool->running < MOST;
}

static void report_spool(struct sy_doctor *doctor, const struct spool *spool)
{
	const char *path = doctor->spool_dir, *records = doctor->config.record_dir;
	long hours = (long)(time(NULL) - spool->oldest) / 3600;

	if (!sy_records_by_day(records) && !sy_doctor_uses_spool(doctor))
		sy_doctor_add(doctor, "spool", SY_WARNING,
			      "mount it; where it is mounted make the mark, once, as its owner: "
			      "touch RECORD_DIR/" SY_RECORDS_MARK " (docs/records.md)",
			      "%s bears no mark %s: records go to %s, where %ld wait", records,
			      SY_RECORDS_MARK, path, spool->over + spool->running);
	else if (spool->over && time(NULL) - spool->oldest > HAND_ON_S)
		sy_doctor_add(doctor, "spool", SY_WARNING,
			      "as root: steelyard-forward SPOOL RECORD_DIR NAME says why; by a "
			      "timer: docs/records.md, \"A spool on every node\"",
			      "%ld records that are over lie in %s, the oldest for %ld hours: "
			      "nobody sends them on",
			      spool->over, path, hours);
	else
		sy_doctor_add(doctor, "spool", SY_OK, "",
			      "%s: %ld records to be sent on, %ld of jobs that run", path,
			      spool->over, spool->running);
}

void sy_doctor_check_spool(struct sy_doctor *doctor)
{
	struct spool spool = {.top = open(doctor->spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

	if (spool.top < 0)
		return; /* this node has none */
	sy_doctor_visit_names(spool.top, ".", visit_job, &spool);
	report_spool(doctor, &spool);
	(void)close(spool.top);
}
