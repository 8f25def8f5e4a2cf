/* steelyard-node send: messages to a running sampler. */
#include "base/file.h"
#include "program/commands.h"
#include "program/options.h"
#include "record/message_grammar.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ANSWER_MS 2000

static const char help[] =
    "usage: steelyard-node send --control SOCKET MESSAGE...\n"
    "\n"
    "Each MESSAGE is one argument, sent in turn (docs/formats.md part 4):\n"
    "  'root PID'  'cgroup PATH'  'tag KEY=VALUE'  'rate HZ'  'exclusive yes|no'\n"
    "  'job FIELD VALUE'  'done PID CPU_US RCHAR WCHAR READ WRITE [UNSURE]'\n"
    "  'cache JSON'  'totals'  'leave'  'end'\n"
    "The answer of `totals` is printed, one line of JSON.\n";

/* A socket that the sampler can answer to: a name of the kernel's choice. */
static int open_socket(const char *path, struct sy_error *err)
{
	struct sockaddr_un own = {.sun_family = AF_UNIX}, to = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(to.sun_path))
		return sy_fail(err, "the socket's path is longer than %zu bytes: %s",
			       sizeof(to.sun_path) - 1, path);
	(void)strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make a socket");
	if (bind(fd, (struct sockaddr *)&own, sizeof(own.sun_family)) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		(void)sy_fail_errno(err, errno, "no sampler listens to %s", path);
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int print_answer(int fd, struct sy_error *err)
{
	struct pollfd wait = {fd, POLLIN, 0};
	char text[SY_MESSAGE_SIZE];
	ssize_t got = poll(&wait, 1, ANSWER_MS) > 0 ? recv(fd, text, sizeof(text), 0) : -1;

	if (got < 0)
		return sy_fail(err, "the sampler did not answer within %d ms", ANSWER_MS);
	(void)printf("%.*s\n", (int)got, text);
	return 0;
}

static int send_one(int fd, const char *text, struct sy_error *err)
{
	struct sy_message message;

	if (strlen(text) >= SY_MESSAGE_SIZE)
		return sy_fail(err, "a message is longer than %d bytes", SY_MESSAGE_SIZE - 1);
	if (sy_message_parse(text, &message, err) < 0)
		return -1;
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return sy_fail_errno(err, errno, "cannot send '%s'", text);
	return message.word == SY_WORD_TOTALS ? print_answer(fd, err) : 0;
}

static int check_all(int count, char **messages, struct sy_error *err)
{
	struct sy_message message;

	for (int i = 0; i < count; i++)
		if (sy_message_parse(messages[i], &message, err) < 0)
			return -1;
	return 0;
}

static int complain(const struct sy_error *err, int code)
{
	(void)fprintf(stderr, "steelyard-node send: %s\n", err->text);
	return code;
}

int sy_cmd_send(int argc, char **argv)
{
	cleanup_close int fd = -1;
	struct sy_error err;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return sy_command_help(help);
	if (argc < 4 || strcmp(argv[1], "--control") != 0)
		return sy_command_usage(help);
	if (check_all(argc - 3, argv + 3, &err) < 0)
		return complain(&err, SY_EXIT_USAGE);
	fd = open_socket(argv[2], &err);
	for (int i = 3; i < argc; i++)
		if (fd < 0 || send_one(fd, argv[i], &err) < 0)
			return complain(&err, SY_EXIT_MISSING);
	return SY_EXIT_DONE;
}
