#include "job/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/samples.h"
#include "netem/policy/policy.h"

#define FILE_SIZE 65536

void sy_job_config_init(struct sy_job_config *config)
{
	*config = (struct sy_job_config){
	    .record_dir = "/var/lib/steelyard/records",
	    .run_dir = "/run/steelyard",
	    .netem_policy = SY_POLICY_PATH,
	    .bpf = true,
	    .rate_hz = 1,
	    .max_rate_hz = 100,
	};
}

static int set_path(char *path, const char *value, struct sy_error *err)
{
	if (value[0] != '/' || strlen(value) >= SY_PATH_SIZE)
		return sy_fail(err, "expected an absolute path of less than %d bytes",
			       SY_PATH_SIZE);
	(void)snprintf(path, SY_PATH_SIZE, "%s", value);
	return 0;
}

static int add_hosts(char *hosts, const char *value, struct sy_error *err)
{
	size_t used = strlen(hosts);

	if (used + strlen(value) + 2 > SY_HOSTS_SIZE)
		return sy_fail(err, "expected hosts of less than %d bytes", SY_HOSTS_SIZE);
	(void)snprintf(hosts + used, SY_HOSTS_SIZE - used, "%s%s", used ? "," : "", value);
	return 0;
}

int sy_config_set_switch(bool *on, const char *value, struct sy_error *err)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return sy_fail(err, "expected yes or no");
	*on = !strcmp(value, "yes");
	return 0;
}

int sy_job_config_set(struct sy_job_config *config, const char *key, const char *value,
		      struct sy_error *err)
{
	if (!strcmp(key, "record_dir"))
		return set_path(config->record_dir, value, err);
	if (!strcmp(key, "run_dir"))
		return set_path(config->run_dir, value, err);
	if (!strcmp(key, "node_program"))
		return set_path(config->node_program, value, err);
	if (!strcmp(key, "netem_policy"))
		return set_path(config->netem_policy, value, err);
	if (!strcmp(key, "root"))
		return set_path(config->root, value, err);
	if (!strcmp(key, "protect"))
		return add_hosts(config->protect, value, err);
	if (!strcmp(key, "exclusive"))
		return sy_config_set_switch(&config->exclusive, value, err);
	if (!strcmp(key, "bpf"))
		return sy_config_set_switch(&config->bpf, value, err);
	if (!strcmp(key, "rate"))
		return sy_rate_parse(value, SY_MAX_RATE_HZ, &config->rate_hz, err);
	if (!strcmp(key, "max_rate"))
		return sy_rate_parse(value, SY_MAX_RATE_HZ, &config->max_rate_hz, err);
	return sy_fail(err, "unknown; known: record_dir, run_dir, node_program, netem_policy, "
			    "exclusive, rate, max_rate, bpf, protect, root");
}

/* Without blanks around it. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t\r");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return text;
}

static int parse_line(struct sy_job_config *config, char *line, const char *path, int number,
		      struct sy_error *err)
{
	struct sy_error reason;
	char *value;

	line = trim(line);
	if (!*line || *line == '#')
		return 0;
	value = strchr(line, '=');
	if (!value)
		return sy_fail(err, "%s line %d: expected KEY=VALUE", path, number);
	*value++ = '\0';
	line = trim(line);
	value = trim(value);
	if (sy_job_config_set(config, line, value, &reason) < 0)
		return sy_fail(err, "%s line %d: %.40s=%.80s: %s", path, number, line, value,
			       reason.text);
	return 0;
}

static int parse_lines(struct sy_job_config *config, char *text, const char *path,
		       struct sy_error *err)
{
	int number = 0;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (parse_line(config, line, path, ++number, err) < 0)
			return -1;
	}
	return 0;
}

int sy_job_config_read(struct sy_job_config *config, const char *path, bool must,
		       struct sy_error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cleanup_free char *text = malloc(FILE_SIZE);
	ssize_t length;

	if (fd < 0 && errno == ENOENT && !must)
		return 0;
	if (fd < 0 || !text)
		return sy_fail_errno(err, errno, "cannot open %s", path);
	if (sy_folder_check(fd, path, err) < 0)
		return -1;
	length = sy_read_fd(fd, text, FILE_SIZE);
	if (length < 0 || length == FILE_SIZE - 1)
		return sy_fail(err, "%s: cannot be read, or is larger than %d bytes", path,
			       FILE_SIZE);
	return parse_lines(config, text, path, err);
}
