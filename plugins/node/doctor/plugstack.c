/* Our line of Slurm's plugstack.conf. */
#include "doctor/doctor.h"

#include "base/file.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME	  "plugstack line"
#define PLUGIN	  "/spank_steelyard.so"
#define FILE_SIZE (1 << 20) /* slurm.conf of a large site */
#define BLANKS	  " \t\r"
#define INSTALL	  "docs/admin.md, \"Install\""
#define DEPTH	  4 /* of files that include files */

/* Of slurm.conf: where packages put it, and where a configless slurmd keeps its copy. */
static const char *const folders[] = {"/etc/slurm", "/run/slurm/conf",
				      "/var/spool/slurmd/conf-cache", "/usr/local/etc",
				      "/etc/slurm-llnl"};

/* What was wrong with the words of our line, the first of it. */
struct line {
	char wrong[256];
	bool required, found;
	int depth;
};

static char *read_text(const struct sy_doctor *doctor, const char *path)
{
	char *text = malloc(FILE_SIZE);
	ssize_t size = text ? sy_read_at(doctor->root, path, text, FILE_SIZE) : -ENOMEM;

	if (size >= 0)
		return text;
	free(text);
	errno = (int)-size;
	return NULL;
}

static void parse_argument(struct sy_doctor *doctor, char *word, struct line *line)
{
	char *value = strchr(word, '=');
	struct sy_error err = {""};

	if (strncmp(word, "admin_comment=", 14) == 0)
		return;
	if (value)
		*value++ = '\0';
	if (sy_job_config_set(&doctor->config, word, value ? value : "", &err) < 0 &&
	    !line->wrong[0])
		(void)snprintf(line->wrong, sizeof(line->wrong), "%.40s: %.200s", word, err.text);
}

static void parse_file(struct sy_doctor *doctor, const char *path, struct line *line);

static void parse_included(struct sy_doctor *doctor, const char *pattern, struct line *line)
{
	glob_t found;

	/* Patterns are of the machine's own files. */
	if (!doctor->is_machine || line->depth >= DEPTH)
		return;
	line->depth++;
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			parse_file(doctor, found.gl_pathv[i], line);
	globfree(&found);
	line->depth--;
}

/* KIND PATH ARGUMENT…, or `include PATTERN`. */
static void parse_line(struct sy_doctor *doctor, const char *file, char *text, struct line *line)
{
	char *rest = NULL, *kind, *path;

	text[strcspn(text, "#")] = '\0';
	kind = strtok_r(text, BLANKS, &rest);
	path = kind ? strtok_r(NULL, BLANKS, &rest) : NULL;
	if (!path)
		return;
	if (strcmp(kind, "include") == 0) {
		parse_included(doctor, path, line);
		return;
	}
	if (!sy_ends_with(path, PLUGIN) && strcmp(path, &PLUGIN[1]) != 0)
		return;
	line->found = true;
	line->required = strcmp(kind, "required") == 0;
	(void)snprintf(doctor->plugin, sizeof(doctor->plugin), "%s", path);
	(void)snprintf(doctor->setup_file, sizeof(doctor->setup_file), "%s", file);
	for (char *word = strtok_r(NULL, BLANKS, &rest); word; word = strtok_r(NULL, BLANKS, &rest))
		parse_argument(doctor, word, line);
}

static void parse_file(struct sy_doctor *doctor, const char *path, struct line *line)
{
	cleanup_free char *text = read_text(doctor, path);
	char *rest = NULL;

	if (!text)
		return;
	for (char *row = strtok_r(text, "\n", &rest); row; row = strtok_r(NULL, "\n", &rest))
		parse_line(doctor, path, row, line);
}

/* PlugStackConfig= of slurm.conf, else plugstack.conf in the same folder. */
static void find_beside_slurm_conf(const struct sy_doctor *doctor, const char *slurm_conf,
				   char *path, size_t size)
{
	static const char key[] = "PlugStackConfig";
	cleanup_free char *text = read_text(doctor, slurm_conf);
	const char *slash = strrchr(slurm_conf, '/');
	char *rest = NULL;

	(void)snprintf(path, size, "%.*s/plugstack.conf", slash ? (int)(slash - slurm_conf) : 0,
		       slurm_conf);
	if (!text)
		return;
	for (char *row = strtok_r(text, "\n", &rest); row; row = strtok_r(NULL, "\n", &rest)) {
		row += strspn(row, BLANKS);
		if (strncasecmp(row, key, sizeof(key) - 1) != 0)
			continue;
		row += sizeof(key) - 1;
		row += strspn(row, BLANKS "=");
		(void)snprintf(path, size, "%.*s", (int)strcspn(row, BLANKS "#"), row);
	}
}

static bool exists(const struct sy_doctor *doctor, const char *path)
{
	int fd = sy_open_at(doctor->root, path);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static bool find_plugstack(const struct sy_doctor *doctor, char *path, size_t size)
{
	const char *named = doctor->is_machine ? getenv("SLURM_CONF") : NULL;
	char conf[SY_PATH_SIZE];

	if (doctor->plugstack) {
		(void)snprintf(path, size, "%s", doctor->plugstack);
		return true;
	}
	if (named) {
		find_beside_slurm_conf(doctor, named, path, size);
		return exists(doctor, path);
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		(void)snprintf(conf, sizeof(conf), "%s/slurm.conf", folders[i]);
		find_beside_slurm_conf(doctor, conf, path, size);
		if (exists(doctor, path))
			return true;
	}
	return false;
}

static void report_plugstack(struct sy_doctor *doctor, const char *path, const struct line *line)
{
	if (!line->found)
		sy_doctor_add(
		    doctor, NAME, SY_WARNING,
		    "on a cluster that is to be measured add the line of "
		    "plugstack.conf.example: " INSTALL,
		    "%s has no line of spank_steelyard.so: jobs of Slurm are not measured", path);
	else if (line->wrong[0])
		sy_doctor_add(doctor, NAME, SY_WARNING,
			      "mend it: the plugin logs it and goes on with the default", "%s: %s",
			      doctor->setup_file, line->wrong);
	else if (line->required)
		sy_doctor_add(doctor, NAME, SY_WARNING,
			      "write `optional`: else Slurm drains the node when the plugin cannot "
			      "be loaded",
			      "%s says `required`", doctor->setup_file);
	else
		sy_doctor_add(doctor, NAME, SY_OK, "", "%s: %s", doctor->setup_file,
			      doctor->plugin);
}

int sy_doctor_check_plugstack(struct sy_doctor *doctor)
{
	struct line line = {.found = false};
	char path[SY_PATH_SIZE];

	if (!find_plugstack(doctor, path, sizeof(path)))
		return -1;
	(void)snprintf(doctor->setup_file, sizeof(doctor->setup_file), "%s", path);
	if (!exists(doctor, path)) {
		sy_doctor_add(doctor, NAME, SY_WARNING, INSTALL, "%s cannot be read", path);
		return 0;
	}
	parse_file(doctor, path, &line);
	doctor->is_set_up = line.found;
	report_plugstack(doctor, path, &line);
	return 0;
}
