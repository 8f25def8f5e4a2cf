#include "job/node_log.h"

#include "base/file.h"
#include "job/config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define TOLD_MAX 8192 /* bytes at a time: a log that is full of us helps nobody */

static int open_complaints(const char *run_dir, const char *node, int flags)
{
	char path[SY_PATH_SIZE + 260];

	(void)snprintf(path, sizeof(path), "%s/%s.log", run_dir, node);
	return open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

int sy_log_open(const char *run_dir, const char *node)
{
	return open_complaints(run_dir, node, O_WRONLY | O_APPEND | O_CREAT);
}

static void replace_controls(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			*text = '?';
}

static void log_lines(char *text, void (*log_line)(const char *line))
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		replace_controls(line);
		log_line(line);
	}
}

void sy_log_forward(const char *run_dir, const char *node, void (*log_line)(const char *line))
{
	char text[TOLD_MAX];
	cleanup_close int fd = open_complaints(run_dir, node, O_RDWR);

	/* Locked: of several slurmstepd that begin or end together one reports it. */
	if (fd < 0 || !sy_lock(fd, 0) || sy_read_fd(fd, text, sizeof(text)) <= 0)
		return;
	(void)ftruncate(fd, 0);
	log_lines(text, log_line);
}

#define LARGEST_BYTES 1000000

void sy_log_write(const char *run_dir, const char *node, const char *job_id, const char *format,
		  ...)
{
	char message[1024], line[1400], when[32];
	cleanup_close int fd = -1;
	struct sy_error err;
	struct stat info;
	struct tm now;
	time_t unix_s = time(NULL);
	va_list list;
	int length;

	va_start(list, format);
	(void)vsnprintf(message, sizeof(message), format, list);
	va_end(list);
	replace_controls(message);
	/* Not into another user's folder, who may have made any links there. */
	if (sy_run_dir_make(run_dir, &err) == 0)
		fd = sy_log_open(run_dir, node);
	if (fd < 0) {
		syslog(LOG_DAEMON | LOG_WARNING, "steelyard: job %.200s: %s", job_id, message);
		return;
	}
	if (fstat(fd, &info) == 0 && info.st_size > LARGEST_BYTES)
		(void)ftruncate(fd, 0);
	(void)strftime(when, sizeof(when), "%FT%TZ", gmtime_r(&unix_s, &now));
	length = snprintf(line, sizeof(line), "%s job %.200s: %s\n", when, job_id, message);
	(void)sy_write_all(fd, line, (size_t)length);
}
