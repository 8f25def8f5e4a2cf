/* Messages to the sampler, good and bad. */
#include "tap.h"

#include "record/message_grammar.h"

static struct sy_message message;
static struct sy_error err;

static bool good(const char *text)
{
	return ok(sy_message_parse(text, &message, &err) == 0, "good: '%s'", text);
}

static void bad(const char *text, const char *says)
{
	bool refused = sy_message_parse(text, &message, &err) < 0;

	ok(refused && strstr(err.text, says), "bad: '%.40s': %s", text, refused ? err.text : "");
}

static void test_good(void)
{
	if (good("root 4711"))
		is_int(message.pid, 4711, "its pid");
	is_int(message.number[0], -1, "it tells of no page faults");
	if (good("root 4711 88"))
		is_int(message.number[0], 88, "its page faults");
	if (good("root 4711 88 1234567890123456789"))
		is_int(message.number[1], 1234567890123456789, "since when it is counted");
	if (good("cgroup /slurm/uid_0/job_5"))
		is_string(message.value, "/slurm/uid_0/job_5", "its path");
	if (good("tag site=CERN = Geneva")) {
		is_string(message.key, "site", "its key");
		is_string(message.value, "CERN = Geneva", "its value, '=' and blanks too");
	}
	good("tag empty=");
	if (good("rate 0.5"))
		ok(message.rate_hz == 0.5, "its rate");
	good("rate 0");
	if (good("job name my job"))
		is_string(message.value, "my job", "its value");
	if (good("job exclusive yes"))
		is_int(message.word, SY_WORD_EXCLUSIVE, "the same as exclusive yes");
	if (good("done 12 1 2 3 4 9007199254740993"))
		is_int(message.number[4], 9007199254740993, "its last number");
	if (good("done 12 1 2 3 4 5"))
		ok(message.has_bytes, "its bytes");
	if (good("done 12 1"))
		ok(message.number[0] == 1 && !message.has_bytes, "CPU time without bytes");
	if (good("counted 300000"))
		is_int(message.number[0], 300000, "counted: microseconds");
	if (good("peak 9007199254740993"))
		is_int(message.number[0], 9007199254740993, "its bytes");
	if (good("cache {\"requested\": \"cold\", \"done\": [\"page cache\"], \"refused\": []}"))
		ok(message.value[0] == '{', "its document");
	if (good("totals"))
		ok(message.number[0] == -1, "a question without a number");
	if (good("totals 12"))
		ok(message.number[0] == 12, "one with a number");
	good("leave");
	good("end");
}

static void test_gpus(void)
{
	char long_list[2048] = "gpus ";

	if (good("gpus 0,2 nvidia0,dri/renderD128 -"))
		is_string(message.value, "0,2 nvidia0,dri/renderD128 -", "its three lists");
	good("gpus GPU-5d3e7a10-0000-4000-8000-000000000000 - nvidia1");
	memset(long_list + 5, '0', sizeof(long_list) - 6);
	memcpy(long_list + 5 + SY_GPUS_SIZE, " - -", 5);
	bad(long_list, "shorter than");
	memcpy(long_list + 4 + SY_GPUS_SIZE, " - -", 5);
	good(long_list);
	bad("gpus 0", "LISTED OPEN DENIED");
	bad("gpus 0 - - -", "LISTED OPEN DENIED");
	bad("gpus 0 /dev/a;b -", "LISTED OPEN DENIED");
}

static void test_bad(void)
{
	char long_tag[2048] = "tag k=";

	memset(long_tag + 6, 'x', sizeof(long_tag) - 7);
	bad("", "none of root");
	bad("roots 1", "none of root");
	bad("totals soon", "the number of the question");
	bad("leave now", "no arguments");
	bad("root", "an argument");
	bad("root 0", "process id");
	bad("attach 1 2", "one process id");
	bad("session x", "one process id");
	bad("root -1", "process id");
	bad("root 1 x", "nanoseconds or nothing");
	bad("root 1 2 3 4", "nanoseconds or nothing");
	bad("root 1 2 -3", "nanoseconds or nothing");
	bad("root 99999999999", "process id");
	bad("root 1 2 99999999999999999999", "nanoseconds or nothing");
	bad("root 1 99999999999999999999 3", "nanoseconds or nothing");
	bad("end now", "no arguments");
	bad("cgroup /a/../../etc", "/proc/PID/cgroup");
	bad("cgroup /a/..", "/proc/PID/cgroup");
	bad("cgroup relative", "/proc/PID/cgroup");
	bad("tag novalue", "KEY=VALUE");
	bad("tag 1k=v", "KEY=VALUE");
	bad("tag a/b=v", "KEY=VALUE");
	bad("tag k=a\nb", "control characters");
	bad("tag k=\xff\xfe", "UTF-8");
	bad(long_tag, "1023 bytes");
	bad("rate fast", "a rate in Hz: 0");
	bad("rate 1e-301", "or 0.001 to 1000");
	bad("rate -1", "a rate in Hz");
	bad("rate nan", "a rate in Hz");
	bad("rate 1001", "a rate in Hz");
	bad("exclusive maybe", "yes or no");
	bad("job colour red", "job field 'colour'");
	bad("done 1 2 3 4 5", "CPU_US");
	bad("cache", "an argument");
	bad("cache cold", "requested");
	bad("cache [1]", "requested");
	bad("cache {\"requested\": 1, \"done\": [], \"refused\": []}", "requested");
	bad("cache {\"requested\": \"cold\", \"done\": [], \"refused\": []} x", "requested");
	bad("cache {\"requested\": \"cold\", \"done\": [], \"refused\": [], \"x\": 1}",
	    "requested");
	bad("done 1 2 3 4 5 6 7", "CPU_US");
	bad("done 1", "CPU_US");
	bad("done 1 2 ", "CPU_US");
	bad("done 1 -2", "CPU_US");
	bad("done 1 2 3 4 5 -6", "CPU_US");
	bad("counted -1", "expected microseconds");
	bad("counted 1 2", "expected microseconds");
	bad("peak 0", "expected bytes");
	bad("peak 1 2", "expected bytes");
	bad("peak -5", "expected bytes");
}

int main(void)
{
	test_good();
	test_gpus();
	test_bad();
	return done_testing();
}
