/* How records lie in their folder (by day, flat), and whether a sweep packs them. */
#include "doctor/doctor.h"

#include "base/file.h"
#include "record/record_files.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANY	   100000		   /* entries from which on a folder is slow to list */
#define LOCK	   ".steelyard-sweep.lock" /* touched when a sweep has done all it was to do */
#define SWEPT_DAYS 3			   /* a sweep every night may miss one */
#define LOOSE_DAYS 30			   /* a sweep packs after 7 days by default */

static bool is_digits(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* `2026-11`. */
static bool is_month(const char *name)
{
	return strlen(name) == 7 && is_digits(name, 4) && name[4] == '-' && is_digits(name + 5, 2);
}

void sy_doctor_visit_names(int top, const char *name, bool (*visit)(void *, const char *),
			   void *context)
{
	int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_dir DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder && fd >= 0)
		(void)close(fd);
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && !visit(context, entry->d_name))
			break;
}

/* What a folder of records has, as far as it was listed. */
struct layout {
	int top;
	long flat;	   /* entries that are no months, MANY at most */
	const char *month; /* the one that is looked at */
	char loose[32];	   /* the first day with jobs that are not packed; "": none */
};

static bool visit_day(void *context, const char *name)
{
	struct layout *found = context;
	char day[sizeof(found->loose)];

	if (strlen(name) != 2 || !is_digits(name, 2))
		return true;
	(void)snprintf(day, sizeof(day), "%.7s/%.2s", found->month, name);
	if (!found->loose[0] || strcmp(day, found->loose) < 0)
		(void)snprintf(found->loose, sizeof(found->loose), "%s", day);
	return true;
}

static bool visit_entry(void *context, const char *name)
{
	struct layout *found = context;

	if (!is_month(name))
		return ++found->flat < MANY;
	found->month = name;
	sy_doctor_visit_names(found->top, name, visit_day, found);
	return true;
}

static void report_flat(struct sy_doctor *doctor, const char *path, const char *how, long flat,
			const char *advice)
{
	if (flat >= MANY)
		sy_doctor_add(doctor, "records", SY_WARNING, advice,
			      "%s: %s, and %d entries or more lie beside one another: slow to list",
			      path, how, MANY);
	else
		sy_doctor_add(doctor, "records", SY_OK, "",
			      "%s: %s; %ld entries lie beside one another", path, how, flat);
}

static void report_layout(struct sy_doctor *doctor, const char *path, int folder, long flat)
{
	struct stat mark;

	if (sy_records_are_marked(folder) || sy_doctor_uses_spool(doctor))
		report_flat(doctor, path, "by day", flat,
			    "they are from before the mark: steelyard sweep packs them and removes "
			    "empty ones (docs/records.md)");
	else if (fstatat(folder, SY_RECORDS_MARK, &mark, AT_SYMLINK_NOFOLLOW) == 0)
		sy_doctor_add(
		    doctor, "records", SY_WARNING,
		    "make it a regular file of root's, or records are stored flat and not by day",
		    "%s/%s is of uid %d, or no regular file: it counts for nobody", path,
		    SY_RECORDS_MARK, (int)mark.st_uid);
	else
		report_flat(doctor, path, "flat, for it bears no mark " SY_RECORDS_MARK, flat,
			    "update readers, then as the folder's owner: touch RECORD_DIR/"
			    ".steelyard-records; and have steelyard sweep run every night "
			    "(docs/records.md)");
}

/* Open and scan the record folder: -1 where it cannot be listed; the check "record folder"
 * reports that. */
static int open_layout(struct layout *found, const char *path)
{
	*found = (struct layout){.top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (found->top >= 0)
		sy_doctor_visit_names(found->top, ".", visit_entry, found);
	return found->top;
}

void sy_doctor_check_records(struct sy_doctor *doctor)
{
	const char *path = doctor->config.record_dir;
	struct layout found;

	if (!sy_doctor_is_selected(doctor, "records") || open_layout(&found, path) < 0)
		return;
	report_layout(doctor, path, found.top, found.flat);
	(void)close(found.top);
}

/* The oldest jobs that no sweep has packed for weeks; "": none, so no sweep is due. */
static void describe_overdue(char text[128], const struct layout *found, time_t now)
{
	char day[SY_JOB_PATH_SIZE];

	sy_format_job_path(day, true, "", now - (time_t)LOOSE_DAYS * SY_DAY_S);
	text[0] = '\0';
	if (found->loose[0] && strcmp(found->loose, day) < 0)
		(void)snprintf(text, 128, "jobs of %s lie loose", found->loose);
	else if (found->flat >= MANY)
		(void)snprintf(text, 128, "%d entries or more lie loose", MANY);
}

static void report_sweep(struct sy_doctor *doctor, const struct layout *found, time_t last)
{
	const char *path = doctor->config.record_dir, *name = "sweep";
	const char *advice = "steelyard sweep --record-dir DIR, as the folder's owner, says why; "
			     "every night by make install-sweep: docs/records.md";
	time_t now = time(NULL);
	long days = (long)((now - last) / SY_DAY_S);
	char overdue[128];

	describe_overdue(overdue, found, now);
	if (last == 0 && overdue[0])
		sy_doctor_add(doctor, name, SY_WARNING, advice,
			      "%s: %s, and no sweep has gone through", path, overdue);
	else if (last == 0)
		sy_doctor_add(doctor, name, SY_OK, "",
			      "%s: no sweep has gone through; nothing is old enough to matter",
			      path);
	else
		sy_doctor_add(doctor, name, days > SWEPT_DAYS ? SY_WARNING : SY_OK,
			      days > SWEPT_DAYS ? advice : "",
			      "%s: the last sweep that did all went through %ld days ago%s%s", path,
			      days, overdue[0] ? "; " : "", overdue);
}

void sy_doctor_check_sweep(struct sy_doctor *doctor)
{
	struct layout found;
	struct stat lock;

	if (!sy_doctor_is_selected(doctor, "sweep") ||
	    open_layout(&found, doctor->config.record_dir) < 0)
		return;
	if (fstatat(found.top, LOCK, &lock, AT_SYMLINK_NOFOLLOW) < 0)
		lock.st_mtime = 0;
	report_sweep(doctor, &found, lock.st_mtime);
	(void)close(found.top);
}
