/* What the options of `sample` that are numbers say. */
#include "program/sample_words.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A whole number from `least` to `most` that ends at `end`. */
static int parse_whole(const char *text, char end, long least, long most, long *value,
		       const char **rest)
{
	char *after;

	errno = 0;
	*value = strtol(text, &after, 10);
	if (errno || after == text || *text < '0' || *text > '9' || *value < least ||
	    *value > most || (*after && *after != end))
		return -1;
	*rest = after;
	return 0;
}

int sy_sample_number(const char *option, const char *text, long least, long most, int *value,
		     struct sy_error *err)
{
	const char *rest;
	long number;

	if (parse_whole(text, '\0', least, most, &number, &rest) < 0)
		return sy_fail(err, "--%s '%s': expected a whole number from %ld to %ld", option,
			       text, least, most);
	*value = (int)number;
	return 0;
}

int sy_sample_owner(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	const char *rest;
	long uid, gid;

	if (parse_whole(text, ':', 0, UINT32_MAX - 1L, &uid, &rest) < 0)
		return sy_fail(err, "--owner '%s': expected UID or UID:GID, as numbers", text);
	gid = uid;
	if (*rest == ':' && parse_whole(rest + 1, '\0', 0, UINT32_MAX - 1L, &gid, &rest) < 0)
		return sy_fail(err, "--owner '%s': expected UID or UID:GID, as numbers", text);
	sampling->has_owner = true;
	sampling->owner_uid = (uid_t)uid;
	sampling->owner_gid = (gid_t)gid;
	return 0;
}

int sy_sample_process(const char *text, struct sy_sampling *sampling, struct sy_error *err)
{
	if (sy_sample_number("process", text, 1, INT32_MAX, &sampling->process, err) < 0)
		return -1;
	if (kill(sampling->process, 0) < 0 && errno == ESRCH)
		return sy_fail(err, "--process %s: there is no process of that id", text);
	return 0;
}

int sy_sample_process_file(const char *path, struct sy_sampling *sampling, struct sy_error *err)
{
	char text[32];
	struct sy_error why;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open --process-file %s", path);
	got = sy_read_fd(fd, text, sizeof(text));
	if (got < 0)
		return sy_fail_errno(err, (int)-got, "cannot read --process-file %s", path);
	text[strcspn(text, "\n")] = '\0';
	if (sy_sample_process(text, sampling, &why) < 0)
		return sy_fail(err, "--process-file %s: %s", path, why.text);
	return 0;
}
