/* A meter of the administrator's own: a file that a program of his writes anew at each reading,
 * /run/steelyard-meters/FOLDER/NAME.meter, lines "KEY VALUE" (docs/sampler.md, "A meter of your
 * own"). What it says of another part of the node, of no time or of one long ago is no value. */
#include "meters/readers.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MOST	  9000000000000 /* J, W, s: in µ they fit into 63 bits */
#define LEAST_US  100000
#define MOST_US	  60000000
#define PERIOD_US 5000000

enum key { COVERS, UNIT, WATTS, JOULES, AT, PERIOD, MEAN, RANGE, RESOLUTION, KEYS };

static const char *const keys[KEYS] = {"covers", "unit", "watts", "joules",    "at",
				       "period", "mean", "range", "resolution"};

/* "344" or "12345.678", in millionths; digits after the sixth are ignored. */
static bool parse_micro(const char *text, int64_t *micro)
{
	int64_t integer, fraction = 0;
	const char *at = sy_number(text, &integer);

	if (!at || integer > MOST)
		return false;
	if (*at == '.' && at[1])
		for (int64_t scale = 100000; *++at >= '0' && *at <= '9'; scale /= 10)
			fraction += (*at - '0') * scale;
	*micro = integer * 1000000 + fraction;
	return !*at;
}

static bool parse_domain(const char *text, enum sy_domain *domain)
{
	for (int i = SY_DOMAIN_NODE; i < SY_DOMAIN_ACCELERATOR; i++) {
		if (strcmp(text, sy_domain_name((enum sy_domain)i)) != 0)
			continue;
		*domain = (enum sy_domain)i;
		return true;
	}
	return false;
}

static bool parse_value(struct sy_meter_text *parsed, enum key key, const char *text)
{
	int64_t *const fields[KEYS] = {[WATTS] = &parsed->value,
				       [JOULES] = &parsed->value,
				       [AT] = &parsed->at_us,
				       [PERIOD] = &parsed->period_us,
				       [MEAN] = &parsed->mean_us,
				       [RANGE] = &parsed->range_uj,
				       [RESOLUTION] = &parsed->resolution};

	if (key == COVERS)
		return parse_domain(text, &parsed->domain);
	if (key != UNIT)
		return parse_micro(text, fields[key]);
	parsed->unit = text[strspn(text, "0123456789")] ? -1 : sy_parse_meter_unit(text);
	return parsed->unit >= 0;
}

static int parse_line(struct sy_meter_text *parsed, bool *given, char *line, struct sy_error *err)
{
	char *value = line + strcspn(line, " ");
	enum key key = COVERS;

	if (*value)
		*value++ = '\0';
	while (key < KEYS && strcmp(line, keys[key]) != 0)
		key++;
	if (key == KEYS)
		return sy_fail(err, "'%.20s' is none of covers, unit, watts, joules, at, …", line);
	if (given[key])
		return sy_fail(err, "%s is said twice", line);
	if (!parse_value(parsed, key, value))
		return sy_fail(err, "%s is '%.20s': expected %s", line, value,
			       key == COVERS ? "node, package, dram, …"
			       : key == UNIT ? "0, 1, …"
					     : "a number");
	given[key] = true;
	return 0;
}

static int check_text(struct sy_meter_text *parsed, const bool *given, struct sy_error *err)
{
	parsed->power = given[WATTS];
	if (given[WATTS] == given[JOULES])
		return sy_fail(err, "expected watts or joules, and not both");
	if (!given[COVERS] || !given[AT] || !parsed->at_us)
		return sy_fail(err, "it does not say %s", given[COVERS] ? "at" : "covers");
	if (!given[PERIOD])
		parsed->period_us = PERIOD_US;
	if (parsed->period_us < LEAST_US || parsed->period_us > MOST_US)
		return sy_fail(err, "its period is not between 0.1 and 60 s");
	if ((given[RANGE] && !given[JOULES]) || (given[MEAN] && !given[WATTS]))
		return sy_fail(err, "a range is of joules, a mean of watts");
	return parsed->mean_us > MOST_US ? sy_fail(err, "its mean is over more than 60 s") : 0;
}

int sy_parse_meter_text(char *text, struct sy_meter_text *parsed, struct sy_error *err)
{
	bool given[KEYS] = {false};

	*parsed = (struct sy_meter_text){.unit = -1};
	for (char *line = strsep(&text, "\n"); line; line = strsep(&text, "\n"))
		if (*line && *line != '#' && parse_line(parsed, given, line, err) < 0)
			return -1;
	return check_text(parsed, given, err);
}

#define METERS	  "/run/steelyard-meters"
#define END	  ".meter"
#define AHEAD_US  1000000
#define LONGEST	  30 /* of NAME: it is a column of the samples */
#define TEXT_SIZE 1024

/* A meter's keys: what was read last. */
enum { VALUE, STAMP };

static bool is_writable_by_others(const struct stat *info)
{
	return (info->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/* The writer owns the folder of its file, which root has made below a folder of root's. The file
 * must belong to the writer, too, and be a regular file: no link, no device. */
static int open_meter_file(int root, const char *path, struct sy_error *err)
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
	if (fstat(folder, &above) < 0 || is_writable_by_others(&above))
		return sy_fail(err, "its folder may be written by others");
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return sy_fail(err, "%s", strerror(errno));
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && !is_writable_by_others(&info) &&
	    (info.st_uid == above.st_uid || info.st_uid == 0))
		return fd;
	(void)close(fd);
	return sy_fail(err, "it must be a file of who owns its folder, written by nobody else");
}

static int read_meter_file(int root, const char *path, struct sy_meter_text *parsed,
			   struct sy_error *err)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC);
	cleanup_close int fd = open_meter_file(root, path, err);
	char text[TEXT_SIZE];

	if (fd < 0)
		return -1;
	if (sy_read_fd(fd, text, sizeof(text)) < 0)
		return sy_fail(err, "it cannot be read");
	if (sy_parse_meter_text(text, parsed, err) < 0)
		return -1;
	if (parsed->at_us > now + AHEAD_US)
		return sy_fail(err, "its time lies %.0f s ahead: CLOCK_MONOTONIC is meant",
			       (double)(parsed->at_us - now) / 1e6);
	return 0;
}

/* A missing file gives no new value: its writer may be restarting. */
static int64_t read_value(struct sy_meter *meter, const char **reason)
{
	struct sy_error err = {""};
	struct sy_meter_text parsed;

	*reason = meter->reason;
	if (read_meter_file(meter->fd, meter->path, &parsed, &err) < 0) {
		if (meter->key[STAMP] && !sy_exists_at(meter->fd, meter->path))
			return meter->key[VALUE];
		(void)snprintf(meter->reason, sizeof(meter->reason), "%.95s", err.text);
		return -1;
	}
	(void)snprintf(meter->reason, sizeof(meter->reason), "%s",
		       parsed.at_us < meter->at_us
			   ? "its time went back"
			   : "it covers another part than before, or another quantity");
	if (parsed.domain != meter->domain || parsed.unit != meter->unit ||
	    parsed.power != meter->power || parsed.range_uj != meter->range_uj ||
	    parsed.at_us < meter->at_us)
		return -1;
	meter->reason[0] = '\0';
	meter->key[VALUE] = parsed.value;
	meter->key[STAMP] = meter->at_us = parsed.at_us;
	return parsed.value;
}

/* Its path is reopened at each reading, below the root that is kept open for it. */
static int open_root(int root, struct sy_meter *meter, struct sy_error *err)
{
	meter->fd = fcntl(root, F_DUPFD_CLOEXEC, 0);
	return meter->fd < 0 ? sy_fail_errno(err, errno, "dup") : 0;
}

static void copy_description(struct sy_meter *meter, const struct sy_meter_text *parsed)
{
	meter->domain = parsed->domain;
	meter->unit = parsed->unit;
	meter->power = parsed->power;
	meter->range_uj = parsed->range_uj;
	meter->resolution = parsed->resolution;
	meter->mean_us = parsed->mean_us;
	meter->period_us = parsed->period_us;
	meter->at_us = parsed->at_us;
}

static void check_access(int root, struct sy_meter *meter)
{
	struct sy_error err = {""};
	struct sy_meter_text parsed;
	int64_t age_us;

	meter->period_us = 1000000; /* until the file has it */
	if (read_meter_file(root, meter->path, &parsed, &err) == 0) {
		copy_description(meter, &parsed);
		age_us = sy_now_us(CLOCK_MONOTONIC) - parsed.at_us;
		meter->readable = age_us <= sy_meter_stale_us(meter);
		(void)sy_fail(&err, "its last reading is %.0f s old", (double)age_us / 1e6);
	}
	if (!meter->readable)
		(void)snprintf(meter->reason, sizeof(meter->reason), "%.95s", err.text);
}

static bool is_name(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return length > 0 && length <= LONGEST && !strcmp(name + length, END);
}

static void find_in_folder(int root, struct sy_meter_list *found, const char *folder)
{
	cleanup_names struct sy_names names = {0};

	if (sy_list_at(root, folder, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++) {
		const char *name = names.name[i];
		struct sy_meter *meter =
		    is_name(name) ? sy_meter_list_add(found, &sy_meter_file) : NULL;

		if (!meter)
			continue;
		(void)snprintf(meter->path, sizeof(meter->path), "%s/%s", folder, name);
		(void)snprintf(meter->name, sizeof(meter->name), "file-%.*s",
			       (int)(strlen(name) - strlen(END)), name);
		check_access(root, meter);
	}
}

static void find(int root, struct sy_meter_list *found, struct sy_error *err)
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
		find_in_folder(root, found, folder);
	}
}

const struct sy_reader sy_meter_file = {.name = "file",
					.who = "whoever may read the file",
					.find = find,
					.open = open_root,
					.read = read_value};
