/* The folders that samplers write to: room, rights, mounts. */
#include "doctor/doctor.h"

#include "base/file.h"
#include "base/json_document.h"
#include "record/record_files.h"
#include "record/unfinished_records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAME	   "record folder"
#define ROOM_BYTES 100e6 /* a day of some jobs' samples at 1 Hz is that much */
#define ANSWER_MS  2000

/* A file as a sampler makes them, and gone again: root_squash and read-only show here alone. */
static int try_writing(int folder)
{
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), ".doctor.%d", (int)getpid());
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	return unlinkat(folder, name, 0) < 0 ? -errno : 0;
}

static bool is_mount_point(const char *path, int folder)
{
	struct stat folder_info, above;

	return strcmp(path, "/") == 0 ||
	       (fstat(folder, &folder_info) == 0 && fstatat(folder, "..", &above, 0) == 0 &&
		folder_info.st_dev != above.st_dev);
}

/* Unmounted it has no mark, and records go to the spool. */
static bool is_guarded(const struct sy_doctor *doctor)
{
	const char *path = doctor->config.record_dir;

	return sy_has_spool(doctor->spool_dir) &&
	       (sy_records_by_day(path) || sy_records_are_marked_by_owner(path));
}

static void report_room(struct sy_doctor *doctor, const char *path, int folder, const char *may)
{
	struct statvfs room;
	double free_bytes;

	if (fstatvfs(folder, &room) < 0) {
		sy_doctor_add(doctor, NAME, SY_OK, "", "%s, %s", path, may);
		return;
	}
	free_bytes = (double)room.f_bavail * (double)room.f_frsize;
	if (free_bytes < ROOM_BYTES)
		sy_doctor_add(doctor, NAME, SY_WARNING,
			      "make room, or pack and remove old records: docs/records.md, "
			      "\"Swept every night\"",
			      "%s has %.0f MB left: jobs lose samples when it is full", path,
			      free_bytes / 1e6);
	else
		sy_doctor_add(doctor, NAME, SY_OK, "", "%s, %s", path, may);
}

/* As far as this check can see, records can be written to the folder. */
static void report_usable(struct sy_doctor *doctor, const char *path, int folder, const char *may)
{
	if (is_mount_point(path, folder) && !is_guarded(doctor))
		sy_doctor_add(
		    doctor, NAME, SY_WARNING,
		    "where it is not mounted one day, records go to the node's own disk, "
		    "unseen: let record_dir= in plugstack.conf name a folder below it, or "
		    "make a spool (docs/records.md)",
		    "%s is a mount point", path);
	else
		report_room(doctor, path, folder, may);
}

static void check_as_root(struct sy_doctor *doctor, const char *path, int folder)
{
	struct sy_error err = {""};
	int result;

	if (sy_doctor_uses_spool(doctor)) {
		report_usable(doctor, path, folder, "its owner's: records go there by the spool");
		return;
	}
	if (sy_folder_check(folder, path, &err) < 0) {
		sy_doctor_add(doctor, NAME, SY_MISSING,
			      "it must be root's, mode 0755: else no records", "%s", err.text);
		return;
	}
	result = try_writing(folder);
	if (result < 0)
		sy_doctor_add(doctor, NAME, SY_MISSING,
			      "root must be able to write there: not read-only, no root_squash; or "
			      "make a spool (docs/records.md)",
			      "%s: cannot make a file in it: %s", path, strerror(-result));
	else
		report_usable(doctor, path, folder, "root can write there");
}

/* Not by stat(2), which a cache may answer. */
static json_t *query_file_system(const void *context)
{
	struct statvfs room;

	(void)statvfs(context, &room);
	return json_true();
}

void sy_doctor_try_record_folder(struct sy_doctor *doctor)
{
	json_t *answer = sy_json_within(ANSWER_MS, query_file_system, doctor->config.record_dir);

	doctor->folder_hangs = !answer;
	json_decref(answer);
}

static void report_hang(struct sy_doctor *doctor, const char *path)
{
	int waiting = sy_opening_count(doctor->config.run_dir);

	sy_doctor_add(
	    doctor, NAME, waiting < SY_OPENING_MAX ? SY_WARNING : SY_MISSING,
	    "see to its file system; when it answers, the samplers that wait write their "
	    "records and end by themselves",
	    "%s has not answered within %d s; %d samplers wait for it, and from %d on new "
	    "jobs run unmeasured",
	    path, ANSWER_MS / 1000, waiting, SY_OPENING_MAX);
}

void sy_doctor_check_record_folder(struct sy_doctor *doctor)
{
	const char *path = doctor->config.record_dir;
	cleanup_close int folder =
	    doctor->folder_hangs ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!sy_doctor_is_selected(doctor, NAME))
		return;
	if (doctor->folder_hangs)
		report_hang(doctor, path);
	else if (folder < 0)
		sy_doctor_add(doctor, NAME,
			      doctor->as_root && doctor->is_set_up ? SY_MISSING : SY_WARNING,
			      "mount it, or make it once, root's and mode 0755; record_dir= in "
			      "plugstack.conf says where it is, STEELYARD_RECORD_DIR where readers "
			      "look",
			      "%s is not there or not readable: %s", path, strerror(errno));
	else if (doctor->as_root)
		check_as_root(doctor, path, folder);
	else
		report_usable(doctor, path, folder,
			      "readable; whether root can write there: as root");
}

void sy_doctor_check_run_folder(struct sy_doctor *doctor)
{
	const char *name = "run folder", *path = doctor->config.run_dir;
	cleanup_close int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sy_error err = {""};

	if (folder < 0 && errno == ENOENT)
		sy_doctor_add(doctor, name, SY_OK, "",
			      "%s is not there yet: the first job makes it", path);
	else if (folder < 0 && errno == EACCES && !doctor->as_root)
		sy_doctor_add(doctor, name, SY_OK, "", "%s is root's alone", path);
	else if (folder < 0)
		sy_doctor_add(doctor, name, SY_MISSING, "run_dir= must name a folder of root's",
			      "%s: %s", path, strerror(errno));
	else if (sy_folder_check(folder, path, &err) < 0)
		sy_doctor_add(doctor, name, SY_MISSING, "else jobs are not measured", "%s",
			      err.text);
	else
		sy_doctor_add(doctor, name, SY_OK, "", "%s", path);
}
