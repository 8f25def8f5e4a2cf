/* A policy's file in a folder of its own, and what it answers: for the tests of policies. */
#ifndef STEELYARD_POLICY_FILE_H
#define STEELYARD_POLICY_FILE_H

#include "tap.h"

#include "netem/policy/policy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/sy-policy-XXXXXX";
static char path[64];
static struct sy_error err;

__attribute__((unused)) static void write_file(const char *text, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, length) != (ssize_t)length || close(fd) < 0)
		(void)ok(false, "cannot write %s", path);
}

__attribute__((unused)) static struct sy_policy *read_policy(const char *text)
{
	err.text[0] = '\0';
	write_file(text, strlen(text));
	return sy_policy_read(path, false, &err);
}

/* Whatever can be unknown is. */
static const struct sy_requester nobody_knows = {.uid = 1000, .exclusive = SY_NOT_KNOWN};

/* What was last complained of, with the file's name as "FILE". */
__attribute__((unused)) static const char *without_path(void)
{
	static char message[600];
	const char *name = strstr(err.text, path);

	if (!name)
		return err.text;
	(void)snprintf(message, sizeof(message), "%.*sFILE%s", (int)(name - err.text), err.text,
		       name + strlen(path));
	return message;
}

/* "" when it is allowed, else the sentence. */
__attribute__((unused)) static const char *answer(const struct sy_policy *policy, const char *text,
						  const struct sy_requester *requester)
{
	struct sy_netem spec;

	if (sy_netem_parse(text, &spec, &err) < 0)
		return "no specification";
	if (sy_policy_allows_netem(policy, &spec, requester, &err) == 0)
		return "";
	return without_path();
}

/* What the policy of this text answers to a request. */
__attribute__((unused)) static void is_answer(const char *text, const char *request,
					      const struct sy_requester *requester,
					      const char *expected)
{
	struct sy_policy *policy = read_policy(text);

	if (ok(policy != NULL, "%.30s %s", text, err.text))
		is_string(answer(policy, request, requester), expected, request);
	sy_policy_free(policy);
}

static bool make_folder(void)
{
	bool made = mkdtemp(folder) != NULL;

	(void)snprintf(path, sizeof(path), "%s/netem.conf", folder);
	return made;
}

static void remove_folder(void)
{
	(void)unlink(path);
	(void)rmdir(folder);
}

#endif
