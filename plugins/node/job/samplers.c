#include "job/samplers.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "job/node_command.h"
#include "job/node_log.h"
#include "record/unfinished_records.h"
#include "sampler/control_socket.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FULL_QUEUE_US 100000

bool sy_control_address(struct sockaddr_un *address, const char *run_dir, const char *node,
			const char *job_id)
{
	const size_t size = sizeof(address->sun_path);
	uint64_t hash;
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(address->sun_path, size, "%s/%s.%s.sock", run_dir, node, job_id);
	if (length > 0 && (size_t)length < size)
		return true;
	hash = sy_hash(sy_hash(SY_HASH, node, strlen(node) + 1), job_id, strlen(job_id) + 1);
	length = snprintf(address->sun_path, size, "%s/job-%016llx.sock", run_dir,
			  (unsigned long long)hash);
	return length > 0 && (size_t)length < size;
}

static bool is_control_socket(const char *name, const char *node)
{
	size_t length = strlen(node);
	const char *ending = strrchr(name, '.');

	if (!ending || strcmp(ending, ".sock") != 0)
		return false;
	return strncmp(name, "job-", 4) == 0 ||
	       (strncmp(name, node, length) == 0 && name[length] == '.');
}

/* The address of a directory's entry; false where it is no socket of the node's. */
static bool find_address(struct sockaddr_un *address, const char *run_dir, const char *name,
			 const char *node)
{
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!is_control_socket(name, node))
		return false;
	length = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", run_dir, name);
	return length > 0 && (size_t)length < sizeof(address->sun_path);
}

void sy_remove_stale_sockets(const char *run_dir, const char *node)
{
	struct sockaddr_un address;
	struct dirent *entry;
	cleanup_dir DIR *dir = opendir(run_dir);

	while (dir && (entry = readdir(dir)))
		if (find_address(&address, run_dir, entry->d_name, node) &&
		    sy_control_connect(&address) == -ECONNREFUSED)
			(void)unlink(address.sun_path);
}

/* A queue that stays full belongs to a living sampler. */
static bool send_not_exclusive(const struct sockaddr_un *address, int64_t until_us)
{
	static const char text[] = "exclusive no";
	int64_t remaining_us = until_us - sy_now_us(CLOCK_MONOTONIC);
	const struct timeval patience = {.tv_usec =
					     remaining_us > 0 ? remaining_us : 1}; /* 0: for ever */
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return false;
	return sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)address,
		      sizeof(*address)) >= 0 ||
	       errno == EAGAIN;
}

bool sy_control_meet_other_jobs(const char *run_dir, const char *node,
				const struct sockaddr_un *own)
{
	struct sockaddr_un address;
	struct dirent *entry;
	cleanup_dir DIR *dir = opendir(run_dir);
	int64_t until_us = sy_now_us(CLOCK_MONOTONIC) + FULL_QUEUE_US; /* of all together */
	bool met = false;

	while (dir && (entry = readdir(dir)))
		if (find_address(&address, run_dir, entry->d_name, node) &&
		    strcmp(address.sun_path, own->sun_path) != 0)
			met |= send_not_exclusive(&address, until_us);
	return met;
}

#define CONTROL_FD     (SY_SPAWN_FDS - 1)
#define JOB_FIELDS_MAX 16
#define NUMBERS	       8

static void fill_numbers(struct sy_arguments *to, const struct sy_launch *launch, char (*text)[32])
{
	(void)snprintf(text[0], sizeof(text[0]), "%g", launch->rate_hz);
	(void)snprintf(text[1], sizeof(text[1]), "%d", (int)launch->watch);
	(void)snprintf(text[2], sizeof(text[2]), "%u:%u", launch->uid, launch->gid);
	(void)snprintf(text[3], sizeof(text[3]), "%d", CONTROL_FD);
	(void)snprintf(text[4], sizeof(text[4]), "%d", (int)launch->parent);
	(void)snprintf(text[5], sizeof(text[5]), "%u", launch->linger_s);
	(void)snprintf(text[6], sizeof(text[6]), "%llu",
		       sy_control_made_ns(launch->control->sun_path));
	(void)snprintf(text[7], sizeof(text[7]), "%lld", (long long)sy_now_us(CLOCK_MONOTONIC));
	sy_option(to, "--rate", text[0]);
	if (launch->watch)
		sy_option(to, "--watch", text[1]);
	sy_option(to, "--owner", text[2]);
	sy_option(to, "--control", launch->control->sun_path);
	sy_option(to, "--control-fd", text[3]);
	sy_option(to, "--control-made", text[6]);
	sy_option(to, "--launched", text[7]);
	if (launch->parent)
		sy_option(to, "--parent", text[4]);
	if (launch->linger_s)
		sy_option(to, "--linger", text[5]);
}

/* `met`: another job's sampler runs on the node, whatever the scheduler reports. */
static void fill_arguments(struct sy_arguments *to, const struct sy_launch *launch, bool met,
			   char (*text)[32])
{
	sy_begin_arguments(to, &launch->program);
	sy_argument(to, "sample");
	sy_option(to, "--record-dir", launch->record_dir);
	sy_option(to, "--run-dir", launch->program.run_dir);
	sy_option(to, "--job-id", launch->job_id);
	sy_option(to, "--node", launch->node);
	if (launch->root)
		sy_option(to, "--root", launch->root);
	fill_numbers(to, launch, text);
	if (launch->bpf)
		sy_option(to, "--bpf", launch->bpf);
	for (int i = 0; i < launch->marks; i++)
		sy_option(to, "--orphan", launch->mark[i]);
	for (size_t i = 0; launch->job_fields[i] && i < JOB_FIELDS_MAX; i++)
		sy_option(to, "--job", launch->job_fields[i]);
	if (met)
		sy_option(to, "--job", "exclusive=no");
	for (size_t i = 0; launch->tags && i < launch->tags->count; i++)
		sy_option(to, "--tag", launch->tags->items[i]);
}

int sy_launch_sampler(const struct sy_launch *launch, pid_t *pid, struct sy_error *err)
{
	struct sy_arguments arguments;
	char text[NUMBERS][32];
	cleanup_close int control = -1, complaints = -1;
	bool met;

	if (sy_run_dir_make(launch->program.run_dir, err) < 0)
		return -1;
	if (sy_opening_count(launch->program.run_dir) >= SY_OPENING_MAX)
		return sy_fail(err,
			       "%d samplers of this node wait already for the record folder %s, "
			       "which does not answer",
			       SY_OPENING_MAX, launch->record_dir);
	control = sy_control_bind(launch->control, err);
	if (control < 0)
		return -1;
	complaints = sy_log_open(launch->program.run_dir, launch->node);
	met = sy_control_meet_other_jobs(launch->program.run_dir, launch->node, launch->control);
	fill_arguments(&arguments, launch, met, text);
	if (sy_spawn(&arguments, (int[SY_SPAWN_FDS]){-1, -1, complaints, control}, pid, err) < 0) {
		(void)unlink(launch->control->sun_path);
		return -1;
	}
	return 0;
}

bool sy_queue_open(struct sy_message_queue *queue, const struct sockaddr_un *address)
{
	struct sockaddr_un own = {.sun_family = AF_UNIX};

	queue->count = queue->sent = 0;
	queue->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (queue->fd < 0)
		return false;
	/* Binding to the family alone makes the kernel choose an address, for answers; connecting
	 * makes it drop what others than the sampler send there. */
	if (bind(queue->fd, (struct sockaddr *)&own, sizeof(own.sun_family)) == 0 &&
	    connect(queue->fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return true;
	sy_queue_close(queue);
	return false;
}

void sy_queue_close(struct sy_message_queue *queue)
{
	if (queue->fd >= 0)
		(void)close(queue->fd);
	queue->fd = -1;
}

void sy_queue_flush(struct sy_message_queue *queue)
{
	while (queue->fd >= 0 && queue->sent < queue->count) {
		const char *text = queue->messages[queue->sent];

		if (send(queue->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || errno == EINTR)
				return;
			sy_queue_close(queue); /* the sampler is gone */
			return;
		}
		queue->sent++;
	}
	queue->count = queue->sent = 0;
}

void sy_queue_send(struct sy_message_queue *queue, const char *format, ...)
{
	char *text;
	va_list list;
	int length;

	if (queue->fd < 0 || queue->count == SY_QUEUE_MAX)
		return;
	text = queue->messages[queue->count];
	va_start(list, format);
	length = vsnprintf(text, SY_MESSAGE_MAX, format, list);
	va_end(list);
	if (length < 0)
		return;
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ')
			*c = '\0';
	}
	queue->count++;
	sy_queue_flush(queue);
}

void sy_queue_drain(struct sy_message_queue *queue, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;

	sy_queue_flush(queue);
	while (queue->fd >= 0 && queue->count > 0 &&
	       (left = end - sy_now_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd room = {.fd = queue->fd, .events = POLLOUT};

		(void)poll(&room, 1, (int)left);
		sy_queue_flush(queue);
	}
}

int sy_queue_request_totals(struct sy_message_queue *queue, char *answer, size_t size, int limit_ms)
{
	struct pollfd ready = {.events = POLLIN};
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;
	char beginning[40];

	(void)snprintf(beginning, sizeof(beginning), "{\"question\":%u,", ++queue->questions);
	sy_queue_send(queue, "totals %u", queue->questions);
	sy_queue_drain(queue, limit_ms);
	if (queue->fd < 0 || queue->count > 0)
		return -1;
	ready.fd = queue->fd;
	while ((left = end - sy_now_ms(CLOCK_MONOTONIC)) >= 0 && poll(&ready, 1, (int)left) == 1) {
		ssize_t length = recv(queue->fd, answer, size - 1, MSG_DONTWAIT);

		if (length <= 0)
			return -1;
		answer[length] = '\0';
		if (strncmp(answer, beginning, strlen(beginning)) == 0)
			return (int)length;
	}
	return -1;
}

bool sy_queue_await_answer(struct sy_message_queue *queue, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms;
	char answer[4096];

	sy_queue_drain(queue, limit_ms);
	return sy_queue_request_totals(queue, answer, sizeof(answer),
				       (int)(end - sy_now_ms(CLOCK_MONOTONIC))) > 0;
}
