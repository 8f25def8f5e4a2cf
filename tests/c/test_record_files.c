/* Where a job's files lie: by day under the mark, as safely made as the flat folders. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

#include "base/file.h"
#include "job/record_lookup.h"
#include "record/record_files.h"

static char top[] = "/tmp/steelyard-test-XXXXXX";

static void command(const char *text)
{
	char line[600];

	(void)snprintf(line, sizeof(line), "cd %s && %s", top, text);
	ok(system(line) == 0, "%s", text);
}

static int opened(char job_path[SY_JOB_PATH_SIZE], struct sy_error *err)
{
	int fd = sy_open_job_folder(top, "7.srv", "n1", job_path, err);

	if (fd >= 0)
		(void)close(fd);
	return fd;
}

static void test_names(void)
{
	char job_path[SY_JOB_PATH_SIZE];

	sy_format_job_path(job_path, true, "7", 1795478399);
	is_string(job_path, "2026-11/23/7", "the last second of a day in UTC");
	sy_format_job_path(job_path, true, "7", 1795478400);
	is_string(job_path, "2026-11/24/7", "and the next");
	sy_format_job_path(job_path, false, "7", 1795478400);
	is_string(job_path, "7", "without the mark");
}

static void test_the_mark(void)
{
	char job_path[SY_JOB_PATH_SIZE];
	struct sy_error err;

	ok(opened(job_path, &err) >= 0 && !strcmp(job_path, "7.srv"), "flat");
	command("ln -s /etc/passwd " SY_RECORDS_MARK);
	ok(opened(job_path, &err) >= 0 && !strcmp(job_path, "7.srv"), "a link is no mark");
	command("rm " SY_RECORDS_MARK " && touch " SY_RECORDS_MARK);
	ok(opened(job_path, &err) >= 0 && job_path[7] == '/' && job_path[10] == '/', "by day: %s",
	   job_path);
}

/* Another's folder, or a link, on any level: nothing is written through it. */
static void test_what_another_put_there(void)
{
	char job_path[SY_JOB_PATH_SIZE], day[SY_JOB_PATH_SIZE], line[600];
	struct sy_error err;

	(void)opened(job_path, &err);
	(void)snprintf(day, sizeof(day), "%.10s", job_path);
	(void)snprintf(line, sizeof(line), "chmod 0777 %s", day);
	command(line);
	ok(opened(job_path, &err) < 0 && strstr(err.text, "written by others"), "%s", err.text);
	(void)snprintf(line, sizeof(line), "mv %.7s away && ln -s away %.7s", day, day);
	command(line);
	ok(opened(job_path, &err) < 0 && strstr(err.text, "links not followed"), "%s", err.text);
	(void)snprintf(line, sizeof(line), "rm %.7s", day);
	command(line);
}

static void write_record(const char *folder, const char *name)
{
	char line[600];

	(void)snprintf(line, sizeof(line), "mkdir -p %s && touch %s/%s", folder, folder, name);
	command(line);
}

/* The sampler began before midnight, the job runs for days, or began before the mark was made. */
static void test_found_again(void)
{
	char job_path[SY_JOB_PATH_SIZE], path[SY_RECORD_PATH_SIZE];
	time_t now = time(NULL);
	json_t *all;

	sy_format_job_path(job_path, true, "8", now - SY_DAY_S);
	write_record(job_path, "n1.100.json");
	is_int(sy_record_newest(top, "8", "n1"), 100, "found by its node");
	is_int(sy_record_newest(top, "8", "n2"), 0, "which another is not");
	sy_format_job_path(job_path, true, "9", now - 40 * SY_DAY_S);
	write_record(job_path, "n1.300.json");
	is_int(sy_record_newest(top, "9", "n1"), 300, "40 days ago");
	write_record("10", "n1.200.json");
	is_int(sy_record_newest(top, "10", "n1"), 200, "of the time before the mark");
	sy_record_folder(path, top, "10", now);
	is_int((long long)strlen(path), (long long)strlen(top) + 3, "where it is");
	write_record("8", "n1.101.json");
	all = sy_record_starts(top, "8", "n1", 1);
	is_int((long long)json_array_size(all), 2, "every start of a job, by day and flat");
	json_decref(all);
}

int main(void)
{
	if (!ok(mkdtemp(top) != NULL, "a folder"))
		return done_testing();
	test_names();
	test_the_mark();
	test_what_another_put_there();
	test_found_again();
	command("cd / && rm -rf \"$OLDPWD\"");
	return done_testing();
}
