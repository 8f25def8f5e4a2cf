/* Questions to the sampler: an answer that comes too late is not that to the next question. */
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

#include "../../plugins/node/job/outbox.c"

static struct sy_outbox outbox;

/* The plugin's side asks in vain; then the sampler answers both questions. */
static void ask_twice(int sampler)
{
	struct sockaddr_un from;
	socklen_t length = sizeof(from);
	char question[64] = "", answer[64];

	is_int(sy_outbox_ask(&outbox, answer, sizeof(answer), 0), -1, "no answer in time");
	(void)recvfrom(sampler, question, sizeof(question) - 1, 0, (struct sockaddr *)&from,
		       &length);
	is_string(question, "totals 1", "the first question");
	for (int number = 1; number <= 2; number++) {
		int used = snprintf(answer, sizeof(answer), "{\"question\":%d,\"cpu_s\":%d}",
				    number, number);

		is_int(sendto(sampler, answer, (size_t)used, 0, (struct sockaddr *)&from, length),
		       used, "an answer");
	}
	ok(sy_outbox_ask(&outbox, answer, sizeof(answer), 10000) > 0, "the second is answered");
	is_string(answer, "{\"question\":2,\"cpu_s\":2}", "by its own answer");
	is_int(sy_outbox_ask(&outbox, answer, sizeof(answer), 0), -1, "and the third by none");
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
	ok(sy_outbox_open(&outbox, &address), "the plugin finds it");
	ask_twice(sampler);
	sy_outbox_close(&outbox);
	ok(unlink(address.sun_path) == 0 && rmdir(dir) == 0, "tidy");
	return done_testing();
}
