#include "job/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>

#include "base/file.h"
#include "job/run_dir.h"

#define LARGEST_BYTES 1000000

void sy_journal(const char *run_dir, const char *node, const char *job_id, const char *format, ...)
{
	char said[1024], line[1400], when[32];
	cleanup_close int fd = -1;
	struct sy_error err;
	struct stat info;
	struct tm now;
	time_t unix_s = time(NULL);
	va_list list;
	int length;

	va_start(list, format);
	(void)vsnprintf(said, sizeof(said), format, list);
	va_end(list);
	for (char *c = said; *c; c++) {
		if ((unsigned char)*c < ' ')
			*c = '?';
	}
	/* Not into a folder of somebody else's, who may have linked anything there. */
	if (sy_run_dir_make(run_dir, &err) == 0)
		fd = sy_complaints_open(run_dir, node);
	if (fd < 0) {
		syslog(LOG_DAEMON | LOG_WARNING, "steelyard: job %.200s: %s", job_id, said);
		return;
	}
	if (fstat(fd, &info) == 0 && info.st_size > LARGEST_BYTES)
		(void)ftruncate(fd, 0);
	(void)strftime(when, sizeof(when), "%FT%TZ", gmtime_r(&unix_s, &now));
	length = snprintf(line, sizeof(line), "%s job %.200s: %s\n", when, job_id, said);
	(void)sy_write_all(fd, line, (size_t)length);
}
