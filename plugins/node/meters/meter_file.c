#include "meters/meter_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "meters/meter_file_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define METERS	  "/run/steelyard-meters"
#define END	  ".meter"
#define AHEAD_US  1000000
#define LONGEST	  30 /* of NAME: it is a column of the samples */
#define TEXT_SIZE 1024

/* A meter's keys: what was read last. */
enum { VALUE, STAMP };

static bool others_write(const struct stat *info)
{
	return (info->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/* Whoever writes it owns its folder, which root has given him below one of root's own; what he puts
 * there is a file of his, or it is not opened: no link, no device. */
static int open_told(int root, const char *path, struct sy_error *err)
{
	cleanup_close int top = sy_open_at(root, METERS), folder = -1;
	const char *name = strrchr(path, '/') + 1;
	struct stat above, info;
	char within[160];
	int fd;

	(void)snprintf(within, sizeof(within), "%.*s", (int)(name - path), path);
	folder = sy_open_at(root, within);
	if (top < 0 || folder < 0)
		return sy_fail(err, "%s: %s", within, strerror(top < 0 ? -top : -folder));
	if (sy_folder_check(top, METERS, err) < 0)
		return -1;
	if (fstat(folder, &above) < 0 || others_write(&above))
		return sy_fail(err, "its folder may be written by others");
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return sy_fail(err, "%s", strerror(errno));
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && !others_write(&info) &&
	    (info.st_uid == above.st_uid || info.st_uid == 0))
		return fd;
	(void)close(fd);
	return sy_fail(err, "it must be a file of who owns its folder, written by nobody else");
}

static int read_told(int root, const char *path, struct sy_file_said *told, struct sy_error *err)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC);
	cleanup_close int fd = open_told(root, path, err);
	char text[TEXT_SIZE];

	if (fd < 0)
		return -1;
	if (sy_read_fd(fd, text, sizeof(text)) < 0)
		return sy_fail(err, "it cannot be read");
	if (sy_file_said_parse(text, told, err) < 0)
		return -1;
	if (told->at_us > now + AHEAD_US)
		return sy_fail(err, "its time lies %.0f s ahead: CLOCK_MONOTONIC is meant",
			       (double)(told->at_us - now) / 1e6);
	return 0;
}

/* A file that is not there at the moment tells nothing new; its writer may have been started anew.
 */
static int64_t read_value(struct sy_meter *meter, const char **why)
{
	struct sy_error err = {""};
	struct sy_file_said told;

	*why = meter->why;
	if (read_told(meter->fd, meter->path, &told, &err) < 0) {
		if (meter->key[STAMP] && !sy_exists_at(meter->fd, meter->path))
			return meter->key[VALUE];
		(void)snprintf(meter->why, sizeof(meter->why), "%.95s", err.text);
		return -1;
	}
	(void)snprintf(meter->why, sizeof(meter->why), "%s",
		       told.at_us < meter->at_us
			   ? "its time went back"
			   : "it covers another part than before, or another quantity");
	if (told.domain != meter->domain || told.unit != meter->unit ||
	    told.power != meter->power || told.range_uj != meter->range_uj ||
	    told.at_us < meter->at_us)
		return -1;
	meter->why[0] = '\0';
	meter->key[VALUE] = told.value;
	meter->key[STAMP] = meter->at_us = told.at_us;
	return told.value;
}

/* Its path is opened anew at each reading, below the root that is kept for it. */
static int open_root(int root, struct sy_meter *meter, struct sy_error *err)
{
	meter->fd = fcntl(root, F_DUPFD_CLOEXEC, 0);
	return meter->fd < 0 ? sy_fail_errno(err, errno, "dup") : 0;
}

static void take(struct sy_meter *meter, const struct sy_file_said *told)
{
	meter->domain = told->domain;
	meter->unit = told->unit;
	meter->power = told->power;
	meter->range_uj = told->range_uj;
	meter->resolution = told->resolution;
	meter->mean_us = told->mean_us;
	meter->period_us = told->period_us;
	meter->at_us = told->at_us;
}

static void look_at(int root, struct sy_meter *meter)
{
	struct sy_error err = {""};
	struct sy_file_said told;
	int64_t age_us;

	meter->period_us = 1000000; /* until it says it */
	if (read_told(root, meter->path, &told, &err) == 0) {
		take(meter, &told);
		age_us = sy_now_us(CLOCK_MONOTONIC) - told.at_us;
		meter->readable = age_us <= sy_meter_stale_us(meter);
		(void)sy_fail(&err, "its last reading is %.0f s old", (double)age_us / 1e6);
	}
	if (!meter->readable)
		(void)snprintf(meter->why, sizeof(meter->why), "%.95s", err.text);
}

static bool is_name(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return length > 0 && length <= LONGEST && !strcmp(name + length, END);
}

static void look_into(int root, struct sy_found *found, const char *folder)
{
	cleanup_names struct sy_names names = {0};

	if (sy_list_at(root, folder, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++) {
		const char *name = names.name[i];
		struct sy_meter *meter =
		    is_name(name) ? sy_found_next(found, &sy_meter_file) : NULL;

		if (!meter)
			continue;
		(void)snprintf(meter->path, sizeof(meter->path), "%s/%s", folder, name);
		(void)snprintf(meter->name, sizeof(meter->name), "file-%.*s",
			       (int)(strlen(name) - strlen(END)), name);
		look_at(root, meter);
	}
}

static void find(int root, struct sy_found *found, struct sy_error *err)
{
	cleanup_names struct sy_names names = {0};

	(void)err;
	if (sy_list_at(root, METERS, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++) {
		char folder[96];

		if (strlen(names.name[i]) >= sizeof(folder) - sizeof(METERS) - 1)
			continue;
		(void)snprintf(folder, sizeof(folder), METERS "/%s", names.name[i]);
		look_into(root, found, folder);
	}
}

const struct sy_reader sy_meter_file = {.name = "file",
					.who = "whoever may read the file",
					.find = find,
					.open = open_root,
					.read = read_value};
