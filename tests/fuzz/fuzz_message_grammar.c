/* Messages of the control socket, one a line: what is kept of them is a document, and small. */
#include "fuzz.h"

#include <sys/types.h>

#include "record/message_grammar.h"

static void take(const char *text, const struct sy_job_notes *told)
{
	struct sy_message message = {0};
	struct sy_error err = {0};

	if (sy_message_parse(text, &message, &err) < 0) {
		must_say_why(&err);
		return;
	}
	must(strlen(message.key) < SY_TAG_KEY_SIZE);
	must(!message.value || (message.value >= text && message.value <= text + strlen(text)));
	if (message.word == SY_WORD_ROOT || message.word == SY_WORD_DONE ||
	    message.word == SY_WORD_SESSION)
		must(message.pid > 0);
	for (int i = 0; message.word == SY_WORD_ROOT && i < 2; i++)
		must(message.number[i] >= -1 && message.number[i] < INT64_MAX);
	for (int i = 0; message.word == SY_WORD_DONE && i < 5; i++)
		must(message.number[i] >= 0);
	sy_message_apply(&message, told);
}

static void must_be_whole(const json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);
	json_t *again = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	must(again && json_equal(again, object));
	json_decref(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sy_job_notes told = {json_object(), json_object(), json_object()};
	char *text = text_of(data, size), *line = text, *next;

	for (; *line; line = next) {
		next = first_line(line);
		take(line, &told);
	}
	must_be_whole(told.job);
	must_be_whole(told.tags);
	must_be_whole(told.conditions);
	json_decref(told.job);
	json_decref(told.tags);
	json_decref(told.conditions);
	free(text);
	return 0;
}
