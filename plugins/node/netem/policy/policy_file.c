/* The policy's file: opened with distrust, kept until it is freed; its lines. */
#include "netem/policy/policy.h"

#include "base/file.h"
#include "netem/policy/policy_fields.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SIZE_MAX_BYTES 65536
#define BLANKS	       " \t\r"

static int read_yes_no(const char *word, void *field, struct sy_error *err)
{
	if (strcmp(word, "yes") && strcmp(word, "no"))
		return sy_fail(err, "expected yes or no");
	*(bool *)field = !strcmp(word, "yes");
	return 0;
}

static int read_refuse_allow(const char *word, void *field, struct sy_error *err)
{
	if (strcmp(word, "refuse") && strcmp(word, "allow"))
		return sy_fail(err, "expected refuse or allow");
	*(bool *)field = !strcmp(word, "allow");
	return 0;
}

static int read_time(const char *word, void *field, struct sy_error *err)
{
	return sy_parse_time(word, SY_DELAY_MAX_US, field, err);
}

static int read_percent(const char *word, void *field, struct sy_error *err)
{
	return sy_parse_percent(word, field, err);
}

static int read_rate(const char *word, void *field, struct sy_error *err)
{
	return sy_parse_rate(word, field, err);
}

static int read_packets(const char *word, void *field, struct sy_error *err)
{
	return sy_parse_count(word, 1, UINT32_MAX, field, err);
}

static int read_bytes(const char *word, void *field, struct sy_error *err)
{
	return sy_parse_count(word, 0, INT64_MAX, field, err);
}

static int read_word(const char *word, void *field, struct sy_error *err)
{
	struct sy_policy_words *words = field;

	if (words->count == SY_POLICY_ITEMS)
		return sy_fail(err, "expected at most %d of them", SY_POLICY_ITEMS);
	words->word[words->count++] = word;
	return 0;
}

static int read_network(const char *word, void *field, struct sy_error *err)
{
	struct sy_policy_networks *networks = field;

	if (networks->count == SY_POLICY_NETWORKS)
		return sy_fail(err, "expected at most %d of them", SY_POLICY_NETWORKS);
	return sy_parse_network(word, &networks->network[networks->count++], err);
}

static int read_address(const char *word, void *field, struct sy_error *err)
{
	struct sy_network network;

	if (sy_parse_network(word, &network, err) < 0)
		return -1;
	if (network.prefix != (network.family == AF_INET ? 32 : 128))
		return sy_fail(err, "expected one address, not a network");
	(void)sy_format_network(&network, field);
	return 0;
}

#define READ_TIME     read_time
#define READ_WHOLE_MS read_time
#define READ_PERCENT  read_percent
#define READ_RATE     read_rate
#define READ_COUNT    read_packets

/* Upper bounds first, then lower ones. */
#define MOST_MOST(id, kind, name)   ONE(name, READ_##kind, SY_FIELD_##kind(max_##id)),
#define LEAST_LEAST(id, kind, name) ONE(name, READ_##kind, SY_FIELD_##kind(min_##id)),
#define MOST_LEAST(...)
#define LEAST_MOST(...)
#define MOST_MEAN(...)
#define LEAST_MEAN(...)
#define MOST_NO(...)
#define LEAST_NO(...)

static const struct key {
	const char *name;
	int (*read)(const char *word, void *field, struct sy_error *err);
	size_t field;
	bool list; /* many words, many lines */
} keys[] = {
#define ONE(name, read, field)                                                                     \
	{                                                                                          \
		name, read, offsetof(struct sy_policy, field), false                               \
	}
#define LIST(name, read, field)                                                                    \
	{                                                                                          \
		name, read, offsetof(struct sy_policy, field), true                                \
	}
    ONE("enabled", read_yes_no, enabled),
    ONE("netem", read_yes_no, netem),
    ONE("cache", read_yes_no, cache),
    ONE("exclusive_only", read_yes_no, exclusive_only),
    LIST("users", read_word, users),
    LIST("groups", read_word, groups),
    LIST("partitions", read_word, partitions),
    LIST("devices", read_word, devices),
    ONE("rdma", read_refuse_allow, rdma),
    LIST("destinations", read_network, destinations),
    LIST("protect", read_network, protect),
    ONE("peer", read_address, peer),
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, name, ...)       \
	MOST_##bound(id, kind, name)
#include "facts/netem_keys.def"
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, name, ...)       \
	LEAST_##bound(id, kind, name)
#include "facts/netem_keys.def"
    ONE("cvmfs_quota_bytes", read_bytes, cvmfs_quota_bytes),
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static int fail_unknown(const char *name, struct sy_error *err)
{
	char known[400] = "";
	size_t used = 0;

	for (size_t i = 0; i < KEYS; i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 keys[i].name);
	return sy_fail(err, "unknown key %.30s; known are %s", name, known);
}

static int read_values(struct sy_policy *policy, const struct key *key, char *rest,
		       struct sy_error *err)
{
	struct sy_error reason;
	int count = 0;

	for (char *word; (word = strsep(&rest, BLANKS));) {
		if (!*word)
			continue;
		if (count++ && !key->list)
			return sy_fail(err, "%s: expected one value, found '%.60s' too", key->name,
				       word);
		if (key->read(word, (char *)policy + key->field, &reason) < 0)
			return sy_fail(err, "%s %.60s: %s", key->name, word, reason.text);
	}
	return count ? 0 : sy_fail(err, "%s: expected a value behind it", key->name);
}

static int read_line(struct sy_policy *policy, char *line, uint32_t *given, struct sy_error *err)
{
	char *name;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, BLANKS);
	if (!*line)
		return 0;
	name = strsep(&line, BLANKS);
	for (size_t i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].name, name))
			continue;
		if (!keys[i].list && *given & 1U << i)
			return sy_fail(err, "%s: was set already, expected it once", name);
		*given |= 1U << i;
		return read_values(policy, &keys[i], line ? line : strchr(name, '\0'), err);
	}
	return fail_unknown(name, err);
}

_Static_assert(KEYS <= 32, "a bit for each key");

static int read_lines(struct sy_policy *policy, struct sy_error *err)
{
	char *rest = policy->text;
	struct sy_error reason;
	uint32_t given = 0;
	int number = 0;

	while (rest) {
		number++;
		if (read_line(policy, strsep(&rest, "\n"), &given, &reason) < 0)
			return sy_fail(err, "%s, line %d: %s", policy->path, number, reason.text);
	}
	return 0;
}

/* What docs/netem.md promises where a key is not there. */
static const struct sy_policy defaults = {
    .netem = true,
    .exclusive_only = true,
#define DEFAULT_MOST(id, kind, value)  .SY_FIELD_##kind(max_##id) = (value),
#define DEFAULT_LEAST(id, kind, value) .SY_FIELD_##kind(min_##id) = (value),
#define DEFAULT_MEAN(...)
#define DEFAULT_NO(...)
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, name, value,     \
	      ...)                                                                                 \
	DEFAULT_##bound(id, kind, value)
#include "facts/netem_keys.def"
};

/* Root's, or (`must_be_root` false) the caller's: a writer of the file controls what this process
 * may do. */
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
	policy->exists = true;
	return read_lines(policy, err);
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
