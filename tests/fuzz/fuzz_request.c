/* A user's wishes as one word: decoded, encoded and decoded they are the same; any bytes at all can
 * be carried. Then the options themselves, as Slurm hands them over. */
#include "fuzz.h"

#include "job/job_options.h"

struct heard {
	int count;
	enum sy_user_option which[64];
	char text[64][1024];
	char again[SY_REQUEST_MAX];
};

static int hear(void *context, enum sy_user_option which, const char *text, struct sy_error *err)
{
	struct heard *heard = context;

	if (heard->count == 64 || strlen(text) >= sizeof(heard->text[0]))
		return sy_fail(err, "too much for this fuzzer");
	heard->which[heard->count] = which;
	(void)strcpy(heard->text[heard->count++], text);
	return sy_request_add(heard->again, sizeof(heard->again), which, text, err);
}

static void say_again(const char *text)
{
	static struct heard first, second;
	struct sy_error err = {0};

	first.count = second.count = 0;
	first.again[0] = second.again[0] = '\0';
	if (sy_request_read(text, hear, &first, &err) < 0) {
		must_say_why(&err);
		return;
	}
	must(sy_request_read(first.again, hear, &second, &err) == 0);
	must(first.count == second.count && !strcmp(first.again, second.again));
	for (int i = 0; i < first.count; i++)
		must(first.which[i] == second.which[i] && !strcmp(first.text[i], second.text[i]));
}

static void carry(const char *text)
{
	static struct heard heard;
	char request[SY_REQUEST_MAX] = "";
	struct sy_error err = {0};

	heard.count = 0;
	heard.again[0] = '\0';
	if (strlen(text) >= 1024 ||
	    sy_request_add(request, sizeof(request), SY_USER_OPTION_TAG, text, &err) < 0)
		return;
	must(is_printable(request));
	must(sy_request_read(request, hear, &heard, &err) == 0);
	must(heard.count == 1 && !strcmp(heard.text[0], text));
}

static void take_options(const char *text)
{
	static struct sy_user_options wishes;
	struct sy_error err = {0};
	char said[512];

	memset(&wishes, 0, sizeof(wishes));
	for (int which = 0; which < SY_USER_OPTIONS; which++) {
		if (sy_user_option_parse(&wishes, (enum sy_user_option)which, text, 50, &err) == 0)
			continue;
		must_say_why(&err);
		sy_format_option_fault(said, sizeof(said), (enum sy_user_option)which, text, &err);
		must(strlen(said) < sizeof(said) && !strpbrk(said, "\n\r\x1b"));
	}
	must(!wishes.has_rate || (wishes.rate_hz >= 0 && wishes.rate_hz <= 50));
}

/* Tags of the environment, which is the user's. */
static void join_tags(const char *text)
{
	static struct sy_tags kept, again;
	static char joined[sizeof(kept.items) + SY_TAGS_MAX];

	kept.count = again.count = 0;
	sy_tags_add_joined(&kept, text);
	must(kept.count <= SY_TAGS_MAX);
	must(sy_tags_join(&kept, joined, sizeof(joined)) == (int)strlen(joined));
	sy_tags_add_joined(&again, joined);
	must(again.count == kept.count);
	for (size_t i = 0; i < kept.count; i++)
		must(!sy_tag_check(kept.items[i], NULL) && !strcmp(kept.items[i], again.items[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);

	say_again(text);
	carry(text);
	take_options(text);
	join_tags(text);
	free(text);
	return 0;
}
