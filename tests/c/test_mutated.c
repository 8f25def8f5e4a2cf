/* Parsers of what users, files and the kernel say, fed with spoilt text: whatever comes, they
 * answer yes or no with a sentence, and read nothing that is not theirs (`tests/run.sh sanitize`).
 * The seed is fixed and the count bounded; SY_SEED=N and SY_ROUNDS=N look further. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

#include "base/file.h"
#include "counters/parse.h"
#include "meters/readings_to_joules.h"
#include "netem/policy/policy.h"
#include "netem/spec/spec.h"
#include "record/message_grammar.h"

#include "../../plugins/node/job/comment.c"
#include "../../plugins/slurm/job_cgroup.c"
#include "../../plugins/node/job/job_options.c"

#define TEXT_MAX 2048

static long rounds = 3000;

/* --- spoiling --------------------------------------------------------------------------------- */

static size_t somewhere(size_t length)
{
	return length ? (size_t)random() % length : 0;
}

static const char *token(void)
{
	static const char *const tokens[] = {"-1",    "0",    "4294967296", "99999999999999999999",
					     "1e309", "nan",  "0x10",	    "%",
					     ",",     "=",    "~",	    "/",
					     "\n",    "\x1b", "\xff",	    " ",
					     "\\u0",  "[[[[", "{\"a\":",    "../../..",
					     "(",     ")",    ":",	    ";rm",
					     "ms",    "gbit", "2147483648", "-9223372036854775808",
					     "\t",    "..",   "\x1f",	    "\xc2\x9b"};

	return tokens[somewhere(sizeof(tokens) / sizeof(tokens[0]))];
}

static void insert(char *text, const char *what)
{
	size_t length = strlen(text), add = strlen(what), at = somewhere(length + 1);

	if (length + add >= TEXT_MAX)
		return;
	memmove(text + at + add, text + at, length - at + 1);
	memcpy(text + at, what, add);
}

static void mutate_once(char *text)
{
	size_t length = strlen(text), at = somewhere(length);

	switch (random() % 5) {
	case 0:
		insert(text, token());
		break;
	case 1: /* cut */
		text[at] = '\0';
		break;
	case 2: /* another byte */
		if (length)
			text[at] = (char)(1 + random() % 255);
		break;
	case 3: /* leave out */
		memmove(text + at, text + at + (at < length), length - at + (at >= length));
		break;
	default: /* say it twice */
		if (2 * length - at < TEXT_MAX) {
			char tail[TEXT_MAX];

			(void)snprintf(tail, sizeof(tail), "%s", text + at);
			insert(text, tail);
		}
	}
}

/* An exactly sized copy, so that a read beyond its end is detected. */
static char *mutate(const char *text)
{
	char copy[TEXT_MAX];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	for (long times = 1 + random() % 4; times > 0; times--)
		mutate_once(copy);
	return strdup(copy);
}

/* Feed one parser with spoilt versions of all its examples. The count of answers that are wrong. */
typedef bool fed(const char *text);

static void feed(const char *name, fed *parser, const char *const *examples, size_t count)
{
	long wrong = 0;

	for (size_t i = 0; i < count; i++)
		ok(parser(examples[i]), "%s: the example itself", name);
	for (long i = 0; i < rounds; i++) {
		cleanup_free char *text = mutate(examples[i % (long)count]);

		if (!text || parser(text))
			continue;
		if (wrong++ < 3)
			(void)printf("# %s: %s\n", name, text);
	}
	is_int(wrong, 0, name);
}

#define FEED(name, parser, ...)                                                                    \
	do {                                                                                       \
		static const char *const examples[] = {__VA_ARGS__};                               \
		feed(name, parser, examples, sizeof(examples) / sizeof(examples[0]));              \
	} while (0)

/* --- what a good answer is -------------------------------------------------------------------- */

static struct sy_error err;

static bool has_reason(int result)
{
	bool good = result == 0 || (result == -1 && err.text[0] && strlen(err.text) < 512);

	err.text[0] = '\0';
	return good;
}

/* A parsed specification can be formatted and parsed again, and is then the same. */
static bool netem(const char *text)
{
	struct sy_netem spec, again;
	char first[SY_NETEM_SIZE], second[SY_NETEM_SIZE];
	int result = sy_netem_parse(text, &spec, &err);

	if (result < 0)
		return has_reason(result);
	(void)sy_netem_format(&spec, first);
	json_decref(sy_netem_json(&spec));
	if (sy_netem_parse(first, &again, &err) < 0)
		return false;
	(void)sy_netem_format(&again, second);
	for (const char *c = first; *c; c++) {
		if (*c <= ' ' || *c > '~')
			return false;
	}
	return strcmp(first, second) == 0;
}

static char folder[] = "/tmp/steelyard-test-XXXXXX", policy_path[64];

static bool policy(const char *text)
{
	cleanup_close int fd = open(policy_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct sy_policy *read;

	if (fd < 0 || sy_write_all(fd, text, strlen(text)) < 0)
		return false;
	read = sy_policy_read(policy_path, false, &err);
	sy_policy_free(read);
	return read || has_reason(-1);
}

static bool message(const char *text)
{
	struct sy_job_notes notes = {json_object(), json_object(), json_object()};
	struct sy_message found;
	int result = sy_message_parse(text, &found, &err);

	if (result == 0)
		sy_message_apply(&found, &notes);
	json_decref(notes.job);
	json_decref(notes.tags);
	json_decref(notes.conditions);
	return has_reason(result);
}

/* Every file of the kernel's to every parser: what one of them takes for its own is not negative.
 */
static bool counters(const char *text)
{
	int64_t io[4] = {0};
	struct sy_stat stat;
	int64_t a = 0, b = 0, c = 0, d = 0, e = 0;

	(void)sy_parse_stat(text, &stat);
	(void)sy_parse_in_cgroup(text, "/slurm/uid_0/job_1", "cpuacct");
	(void)sy_parse_keyed(text, "usage_usec", &a);
	(void)sy_parse_number(text, &b);
	(void)sy_parse_pressure(text, &c);
	(void)sy_parse_snmp(text, &d, &e);
	return sy_parse_io(text, io) <= 0 && io[0] >= 0 && io[3] >= 0 && a >= 0 && b >= 0 &&
	       c >= 0 && d >= 0 && e >= 0;
}

/* Tags from the environment, which is the user's: what is kept is what sbatch would have taken. */
static bool tags(const char *text)
{
	struct sy_tags kept = {0};

	sy_tags_add_joined(&kept, text);
	for (size_t i = 0; i < kept.count; i++) {
		if (sy_tag_check(kept.items[i], &err) < 0)
			return false;
	}
	return kept.count <= SY_TAGS_MAX;
}

static bool answer(const char *text)
{
	struct sy_totals totals;

	(void)sy_totals_from_json(&totals, text);
	for (int i = 0; i < SY_TOTALS; i++)
		if (totals.known[i] && !sy_is_countable(totals.value[i]))
			return false;
	return true;
}

static bool is_plain_line(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ')
			return false;
	}
	return true;
}

static bool comment(const char *text)
{
	struct sy_tags kept = {0};
	struct sy_comment message = {.tags = &kept};
	cleanup_free char *line = NULL;
	json_t *read;
	bool good;

	sy_node_kind_from_record(&message.kind, text);
	line = sy_comment_text(&message);
	read = line ? json_loads(line, 0, NULL) : NULL;
	good = read && strlen(line) <= SY_COMMENT_MAX && is_plain_line(line);
	json_decref(read);
	return good;
}

static bool cgroups(const char *text)
{
	struct sy_egress plan;
	size_t length = 0;
	const char *found = sy_job_cgroup_find(text, 4711, &length);

	for (size_t rule = 0; rule < 2; rule++) {
		sy_egress_read(&plan, text, rule ? sy_egress_from_slurm : sy_egress_to_top);
		for (size_t i = 0; i < plan.count; i++) {
			if (strncmp(plan.paths[i], "/sys/fs/cgroup/", 15) != 0)
				return false;
		}
	}
	return !found || (found >= text && found + length <= text + strlen(text));
}

/* ---------------------------------------------------------------------------------------------- */

static void feed_users(void)
{
	FEED("netem", netem, "none", "delay=50ms~5ms/normal,loss=0.1%,to=10.0.0.0/8,port=1094",
	     "loss=gemodel:1%:10%:70%:0.1%,duplicate=1%,corrupt=0.01%",
	     "delay=1.5ms,reorder=1%,rate=100mbit,limit=10000,rto_min=2ms,to=fd00::/8,dev=eth0,"
	     "direction=both");
	FEED("policy", policy, "enabled yes\nusers root 1000 # them\nmax_delay 10s\n",
	     "enabled yes\nnetem yes\ncache no\ndestinations 10.0.0.0/8 fd00::/8\nprotect "
	     "10.1.0.0/16\n"
	     "devices eth* ib?\npartitions a b\npeer 10.0.0.1\ncapture_max_bytes 1000\nmin_rate "
	     "1mbit\n");
	FEED("tags", tags,
	     "a=1\x1f"
	     "b=2",
	     "net.k-ey=delay 50ms\x1fx=<script>\x1fy=\\");
	FEED("answer", answer,
	     "{\"elapsed_s\":2,\"cpu_s\":1.5,\"max_memory_bytes\":7,\"energy_j\":null}");
	FEED("record", comment,
	     "{\"probe\":{\"node_type\":\"virtual\",\"virtualization\":{\"vm\":{\"name\":\"kvm\"},"
	     "\"container\":{\"name\":\"none\"}},\"kernel\":{\"release\":\"6.1\"}}}");
}

static void feed_kernel(void)
{
	FEED("counters", counters,
	     "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 4096\n"
	     "write_bytes: 323932160\ncancelled_write_bytes: 8192\n",
	     "4711 (a) b) R 12 4711 4711 34816 -1 4194304 113 5 0 0 42 17 300 9 20 0 1 0 8192 "
	     "2576384 243 18446744073709551615 94 95 1 0 0\n",
	     "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=5\n",
	     "Tcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 5 7 2\n",
	     "usage_usec 12345\nuser_usec 1\nsystem_usec 2\n",
	     "4:cpu,cpuacct:/slurm/uid_0/job_1/step_0\n0::/system.slice/slurmstepd.scope/job_1\n",
	     "262143328850\n");
	FEED("cgroups", cgroups,
	     "9:freezer:/slurm/uid_1000/job_4711/step_batch\n1:name=systemd:/x\n0::/y\n",
	     "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n");
	FEED("message", message, "root 4711", "tag a=b", "job name a name", "rate 10",
	     "cgroup /slurm/uid_0/job_1", "done 4711 1 2 3 4 5", "exclusive yes", "end",
	     "cache {\"requested\":\"cold\",\"done\":[\"page cache\"],\"refused\":[]}");
}

int main(void)
{
	const char *seed = getenv("SY_SEED"), *more = getenv("SY_ROUNDS");

	srandom(seed ? (unsigned)strtoul(seed, NULL, 10) : 1);
	rounds = more ? strtol(more, NULL, 10) : rounds;
	if (!ok(mkdtemp(folder) != NULL, "a folder for the policy"))
		return done_testing();
	(void)snprintf(policy_path, sizeof(policy_path), "%s/netem.conf", folder);
	feed_users();
	feed_kernel();
	ok(unlink(policy_path) == 0 && rmdir(folder) == 0, "tidy");
	return done_testing();
}
