/* The policy's file: opened with distrust, kept until it is freed. */
#include "netem/policy/parts.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SIZE_MAX_BYTES 65536

/* What docs/netem.md promises where a key is not there. */
static const struct sy_policy defaults = {
    .netem = true,
    .exclusive_only = true,
    .max_delay_us = 1000000,
    .max_jitter_us = 1000000,
    .max_loss_ppb = SY_WHOLE_PPB / 2,
    .max_duplicate_ppb = SY_WHOLE_PPB / 2,
    .max_corrupt_ppb = SY_WHOLE_PPB / 2,
    .max_reorder_ppb = SY_WHOLE_PPB,
    .min_rate_bit_per_s = 1000000,
    .min_rto_us = 1000,
    .max_limit_packets = 1000000,
    .capture_max_bytes = 100000000,
};

/* Root's, or (`must_be_root` false) of whoever runs this: who could write it could write anything
 * this process may do. */
static int check_owner(int fd, const char *path, bool must_be_root, struct sy_error *err)
{
	struct stat found;

	if (fstat(fd, &found) < 0)
		return sy_fail_errno(err, errno, "%s", path);
	if (!S_ISREG(found.st_mode))
		return sy_fail(err, "%s: expected a regular file", path);
	if (found.st_uid != 0 && (must_be_root || found.st_uid != geteuid()))
		return sy_fail(err, "%s: belongs to user %u, expected root: chown root %s", path,
			       found.st_uid, path);
	if (found.st_mode & (S_IWGRP | S_IWOTH))
		return sy_fail(err, "%s: others than its owner may write to it: chmod go-w %s",
			       path, path);
	if (found.st_size >= SIZE_MAX_BYTES)
		return sy_fail(err, "%s: longer than %d bytes", path, SIZE_MAX_BYTES - 1);
	return 0;
}

static int read_text(struct sy_policy *policy, bool must_be_root, struct sy_error *err)
{
	const char *path = policy->path;
	/* O_NONBLOCK: a FIFO must not hold a job up. */
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t length;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 && errno == ELOOP)
		return sy_fail(err, "%s: is a symbolic link, expected the file itself", path);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot read %s", path);
	if (check_owner(fd, path, must_be_root, err) < 0)
		return -1;
	length = sy_read_fd(fd, policy->text, SIZE_MAX_BYTES);
	if (length < 0)
		return sy_fail_errno(err, (int)-length, "cannot read %s", path);
	if (strlen(policy->text) != (size_t)length)
		return sy_fail(err, "%s: has a NUL in it, expected text", path);
	policy->there = true;
	return sy_policy_read_lines(policy, err);
}

struct sy_policy *sy_policy_read(const char *path, bool must_be_root, struct sy_error *err)
{
	struct sy_policy *policy = malloc(sizeof(*policy));

	if (!policy) {
		(void)sy_fail(err, "%s: out of memory", path);
		return NULL;
	}
	*policy = defaults;
	policy->path = strdup(path);
	policy->text = malloc(SIZE_MAX_BYTES);
	if (!policy->path || !policy->text)
		(void)sy_fail(err, "%s: out of memory", path);
	else if (read_text(policy, must_be_root, err) == 0)
		return policy;
	sy_policy_free(policy);
	return NULL;
}

void sy_policy_free(struct sy_policy *policy)
{
	if (!policy)
		return;
	free(policy->path);
	free(policy->text);
	free(policy);
}
