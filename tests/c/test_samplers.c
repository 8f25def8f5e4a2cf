/* Questions to the sampler: an answer that comes too late is not that to the next question. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#include "../../plugins/node/job/samplers.c"

static struct sy_message_queue queue;

/* The plugin's request gets no answer in time; then the sampler answers both questions. */
static void ask_twice(int sampler)
{
	struct sockaddr_un from;
	socklen_t length = sizeof(from);
	char question[64] = "", answer[64];

	is_int(sy_queue_request_totals(&queue, answer, sizeof(answer), 0), -1, "no answer in time");
	(void)recvfrom(sampler, question, sizeof(question) - 1, 0, (struct sockaddr *)&from,
		       &length);
	is_string(question, "totals 1", "the first question");
	for (int number = 1; number <= 2; number++) {
		int used = snprintf(answer, sizeof(answer), "{\"question\":%d,\"cpu_s\":%d}",
				    number, number);

		is_int(sendto(sampler, answer, (size_t)used, 0, (struct sockaddr *)&from, length),
		       used, "an answer");
	}
	ok(sy_queue_request_totals(&queue, answer, sizeof(answer), 60000) > 0,
	   "the second is answered");
	is_string(answer, "{\"question\":2,\"cpu_s\":2}", "by its own answer");
	is_int(sy_queue_request_totals(&queue, answer, sizeof(answer), 0), -1,
	       "and the third by none");
}

/* A sampler that is starting: it reads after a while, and answers its questions. */
static void read_late(int sampler)
{
	struct sockaddr_un from;
	socklen_t length;
	char text[64] = "", wanted[32];

	(void)snprintf(wanted, sizeof(wanted), "totals %u", queue.questions + 1);
	(void)alarm(90);
	(void)usleep(200000);
	while (strcmp(text, wanted) != 0) {
		ssize_t got;

		length = sizeof(from);
		got =
		    recvfrom(sampler, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &length);
		text[got > 0 ? got : 0] = '\0';
	}
	(void)snprintf(text, sizeof(text), "{\"question\":%u,}", queue.questions + 1);
	(void)sendto(sampler, text, strlen(text), 0, (struct sockaddr *)&from, length);
	_exit(0);
}

static void ask_behind_many(int sampler)
{
	pid_t child = fork();
	char answer[64];

	if (child == 0)
		read_late(sampler);
	for (int i = 0; i < 40; i++)
		sy_queue_send(&queue, "tag k%d=v", i);
	ok(queue.count > 0, "the kernel does not hold all of them");
	ok(sy_queue_request_totals(&queue, answer, sizeof(answer), 60000) > 0,
	   "a question waits for those before it");
	(void)waitpid(child, NULL, 0);
}

int main(void)
{
	char dir[] = "/tmp/steelyard-test-XXXXXX";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sampler = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (!ok(mkdtemp(dir) != NULL, "a folder"))
		return done_testing();
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", dir);
	ok(bind(sampler, (struct sockaddr *)&address, sizeof(address)) == 0, "a sampler");
	ok(sy_queue_open(&queue, &address), "the plugin finds it");
	ask_twice(sampler);
	ask_behind_many(sampler);
	sy_queue_close(&queue);
	ok(unlink(address.sun_path) == 0 && rmdir(dir) == 0, "tidy");
	return done_testing();
}
