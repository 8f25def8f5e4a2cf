/* The policy's file: distrusted, understood line by line, its ranges and places. */
#include "policy_file.h"

#include <sys/stat.h>

/* A file's error, without the folder's name. */
static void is_refused_file(const char *text, const char *error)
{
	struct sy_policy *policy = read_policy(text);
	char expected[600];

	(void)snprintf(expected, sizeof(expected), "%s%s", path, error);
	ok(!policy, "%.40s", text);
	is_string(err.text, expected, "its error");
	sy_policy_free(policy);
}

/* Root, in a job of which nothing else is known. */
static const struct sy_requester root = {.uid = 0, .exclusive = SY_NOT_KNOWN};

static void test_missing(void)
{
	struct sy_policy *policy;
	struct sy_netem spec;

	(void)unlink(path);
	policy = sy_policy_read(path, true, &err);
	ok(policy != NULL, "no file is a policy");
	is_string(answer(policy, "none", &nobody_knows), "", "none needs no policy");
	is_string(
	    answer(policy, "delay=1ms", &nobody_knows),
	    "netem: not allowed on this machine, since there is no FILE: an administrator has "
	    "to write it (docs/netem.md)",
	    "nothing else is allowed");
	ok(sy_netem_parse("delay=1ms", &spec, &err) == 0 &&
	       sy_policy_allows_netem(policy, &spec, &root, &err) < 0,
	   "not to root either");
	ok(sy_policy_allows_cache(policy, &nobody_knows, &err) < 0, "no caches: %s", err.text);
	ok(!sy_policy_peer(policy), "no peer");
	sy_policy_free(policy);
}

static void is_distrusted(const char *reason)
{
	struct sy_policy *policy = sy_policy_read(path, false, &err);

	ok(!policy && strstr(err.text, reason), "distrusted: %s", err.text);
	sy_policy_free(policy);
}

static void test_trust(void)
{
	char link[80];

	write_file("enabled yes\n", 12);
	(void)chmod(path, 0620);
	is_distrusted("others than its owner may write to it: chmod go-w");
	(void)chmod(path, 0602);
	is_distrusted("others than its owner may write to it: chmod go-w");
	(void)unlink(path);
	(void)snprintf(link, sizeof(link), "%s.real", path);
	ok(symlink(link, path) == 0, "a symbolic link");
	is_distrusted("is a symbolic link");
	(void)unlink(path);
	ok(mkfifo(path, 0600) == 0, "a FIFO");
	is_distrusted("expected a regular file");
	(void)unlink(path);
}

static void test_owner(void)
{
	struct sy_policy *policy;

	write_file("enabled yes\n", 12);
	if (geteuid() == 0 && chown(path, 1000, 0) < 0)
		ok(false, "chown");
	policy = sy_policy_read(path, true, &err);
	ok(!policy && strstr(err.text, "expected root: chown root "), "must be root's: %s",
	   err.text);
	sy_policy_free(policy);
	policy = sy_policy_read(path, false, &err);
	ok(!policy == (geteuid() == 0), "one's own will do for advice, another user's never");
	sy_policy_free(policy);
	(void)unlink(path);
}

/* Names of the bounds: upper ones first. */
#define NAME_MOST_MOST(name)   name ", "
#define NAME_LEAST_LEAST(name) name ", "
#define NAME_MOST_LEAST(name)
#define NAME_LEAST_MOST(name)
#define NAME_MOST_MEAN(name)
#define NAME_LEAST_MEAN(name)
#define NAME_MOST_NO(name)
#define NAME_LEAST_NO(name)

static void test_lines(void)
{
	static const char nul[] = "enabled yes\n\0users x\n";
	char *text = malloc(70000);

	is_refused_file("enabled maybe\n", ", line 1: enabled maybe: expected yes or no");
	is_refused_file("enabled yes\n\nenabled no\n",
			", line 3: enabled: was set already, expected it once");
	is_refused_file("enabled\n", ", line 1: enabled: expected a value behind it");
	is_refused_file("users # none\n", ", line 1: users: expected a value behind it");
	is_refused_file("enabled yes no\n",
			", line 1: enabled: expected one value, found 'no' too");
	is_refused_file("max_delay=1s\n",
			", line 1: unknown key max_delay=1s; known are enabled, netem, cache, "
			"exclusive_only, users, groups, partitions, devices, rdma, "
			"destinations, protect, peer, "
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, name, ...)       \
	NAME_MOST_##bound(name)
#include "facts/netem_keys.def"
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, name, ...)       \
	NAME_LEAST_##bound(name)
#include "facts/netem_keys.def"
			"cvmfs_quota_bytes");
	is_refused_file(
	    "# a\nmax_delay 5\n",
	    ", line 2: max_delay 5: expected a time with unit us, ms or s, such as 50ms");
	is_refused_file("max_loss 5\n", ", line 1: max_loss 5: expected a percentage from 0% to "
					"100%, such as 0.1%");
	is_refused_file("destinations 10.0.0.1/8\n",
			", line 1: destinations 10.0.0.1/8: bits after the prefix are set; the "
			"network is 10.0.0.0/8");
	is_refused_file("peer 10.0.0.0/8\n",
			", line 1: peer 10.0.0.0/8: expected one address, not a network");
	write_file(nul, sizeof(nul) - 1);
	is_distrusted("has a NUL in it, expected text");
	memset(text, '\n', 69999);
	text[69999] = '\0';
	is_refused_file(text, ": longer than 65535 bytes");
	memset(text, '\0', 70000);
	(void)strcpy(text, "protect");
	for (int i = 0; i < 17; i++)
		(void)snprintf(text + strlen(text), 20, " 10.0.0.%d", i);
	is_refused_file(text, ", line 1: protect 10.0.0.16: expected at most 16 of them");
	free(text);
}

static void test_ranges(void)
{
	static const struct {
		const char *lines, *request, *expected;
	} rows[] = {
	    {"", "delay=1s", ""},
	    {"", "delay=1001ms",
	     "netem: delay 1001ms: at most 1s is allowed here (max_delay in FILE)"},
	    {"max_delay 2s", "delay=1001ms", ""},
	    {"max_jitter 1ms", "delay=9ms~1ms", ""},
	    {"max_jitter 1ms", "delay=9ms~2ms",
	     "netem: jitter 2ms: at most 1ms is allowed here (max_jitter in FILE)"},
	    {"", "loss=50%", ""},
	    {"", "loss=51%", "netem: loss 51%: at most 50% is allowed here (max_loss in FILE)"},
	    {"max_loss 10%", "loss=gemodel:1%:9%", ""},
	    {"max_loss 10%", "loss=gemodel:1%:8%:90%:0.5%",
	     "netem: loss=gemodel with a mean loss of 10.444444%: at most 10% is allowed here "
	     "(max_loss in FILE)"},
	    {"max_loss 10%", "loss=gemodel:0%:0%:0%:11%",
	     "netem: loss=gemodel with a mean loss of 11%: at most 10% is allowed here (max_loss "
	     "in "
	     "FILE)"},
	    {"max_duplicate 1%", "duplicate=2%",
	     "netem: duplicate 2%: at most 1% is allowed here (max_duplicate in FILE)"},
	    {"max_corrupt 1%", "corrupt=2%",
	     "netem: corrupt 2%: at most 1% is allowed here (max_corrupt in FILE)"},
	    {"max_reorder 1%", "delay=1ms,reorder=2%",
	     "netem: reorder 2%: at most 1% is allowed here (max_reorder in FILE)"},
	    {"", "limit=1000001",
	     "netem: limit 1000001: at most 1000000 packets are allowed here (max_limit in FILE)"},
	    {"", "rate=1mbit", ""},
	    {"", "rate=999kbit",
	     "netem: rate 999kbit: at least 1mbit is allowed here (min_rate in FILE)"},
	    {"min_rto 5ms", "rto_min=5ms", ""},
	    {"min_rto 5ms", "rto_min=4ms",
	     "netem: rto_min 4ms: at least 5ms is allowed here (min_rto in FILE)"},
	    {"netem no", "delay=1ms", "netem: switched off on this machine: netem no in FILE"},
	};

	is_answer("", "delay=1ms", &nobody_knows,
		  "netem: switched off on this machine: FILE has no 'enabled yes'");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[100];

		(void)snprintf(text, sizeof(text), "enabled yes\n%s\r\n", rows[i].lines);
		is_answer(text, rows[i].request, &nobody_knows, rows[i].expected);
		if (*rows[i].expected)
			is_answer(text, rows[i].request, &root, rows[i].expected);
	}
}

/* Values that are several numbers, of which one counts. */
static void test_ranges_of_models(void)
{
	is_answer("enabled yes\nmax_loss 10%\n", "loss=state:0%:0%:0%:0%:12%", &nobody_knows,
		  "netem: loss=state with a mean loss of 10.714285%: at most 10% is allowed here "
		  "(max_loss in FILE)");
	is_answer("enabled yes\nmax_loss 10%\n", "loss=state:0%:0%:0%:0%:11%", &nobody_knows, "");
	is_answer("enabled yes\nmax_delay 10ms\n", "slot=5ms:20ms", &nobody_knows,
		  "netem: slot 20ms: at most 10ms is allowed here (max_delay in FILE)");
	is_answer("enabled yes\nmax_delay 10ms\n", "slot=2ms~2ms/normal", &nobody_knows, "");
	is_answer("enabled yes\nmax_delay 10ms\n", "slot=4ms~2ms/normal", &nobody_knows,
		  "netem: slot 12ms: at most 10ms is allowed here (max_delay in FILE)");
	is_answer("enabled yes\nmax_delay 20ms\n", "slot=5ms:20ms", &nobody_knows, "");
}

/* The requester is checked beforehand; for a trace's lines only the values remain. */
static void test_lines_of_a_trace(void)
{
	struct sy_policy *policy =
	    read_policy("enabled yes\ndestinations 10.0.0.0/8\nmin_rate 5mbit\n");
	struct sy_netem line = {.has_rate = true, .rate_bit_per_s = 5000000};

	is_string(answer(policy, "trace=wan,to=10.1.0.0/16", &nobody_knows), "", "a trace by name");
	ok(sy_policy_allows_values(policy, &line, &err) == 0, "a line within the bounds");
	line.rate_bit_per_s = 4999992;
	ok(sy_policy_allows_values(policy, &line, &err) < 0, "and one that is not");
	is_string(without_path(),
		  "netem: rate 4999992bit: at least 5mbit is allowed here (min_rate in FILE)",
		  "says why");
	sy_policy_free(policy);
}

/* Their destinations are in the file: each of its links is checked. */
static void test_links_of_sites(void)
{
	struct sy_policy *policy =
	    read_policy("enabled yes\ndestinations 10.0.0.0/8\nprotect 10.9.0.0/16\n");
	struct sy_netem link;

	is_string(answer(policy, "sites=wan", &nobody_knows), "", "sites by name");
	(void)sy_netem_parse("delay=1s,to=10.1.0.0/16", &link, NULL);
	ok(sy_policy_allows_link(policy, &link, &err) == 0, "a link within the bounds");
	(void)sy_netem_parse("delay=2s,to=10.1.0.0/16", &link, NULL);
	ok(sy_policy_allows_link(policy, &link, &err) < 0 && strstr(err.text, "max_delay"), "%s",
	   "one that is too long");
	(void)sy_netem_parse("delay=1s,to=11.1.0.0/16", &link, NULL);
	ok(sy_policy_allows_link(policy, &link, &err) < 0 && strstr(err.text, "destinations"), "%s",
	   "one that leads elsewhere");
	(void)sy_netem_parse("delay=1s,to=10.9.1.0/24", &link, NULL);
	ok(sy_policy_allows_link(policy, &link, &err) < 0 && strstr(err.text, "protect"), "%s",
	   "one to what is never shaped");
	sy_policy_free(policy);
}

static void test_places(void)
{
	static const char text[] =
	    "enabled yes # on\ndestinations 10.0.0.0/8\n"
	    "destinations 2001:db8::/32 # more\nprotect 10.9.0.0/16 10.0.0.1\n"
	    "devices eth* ib[01]\n";
	struct sy_policy *policy;
	struct sy_network spared[8];

	is_answer(text, "delay=1ms,to=10.0.0.0/8", &nobody_knows, "");
	is_answer(text, "delay=1ms,to=10.1.2.3,to=2001:db8:5::/48,dev=eth7", &nobody_knows, "");
	is_answer(
	    text, "delay=1ms", &nobody_knows,
	    "netem: needs a to= here, within the destinations of FILE, such as to=10.0.0.0/8");
	is_answer(text, "delay=1ms,to=10.1.2.3,to=0.0.0.0/0", &nobody_knows,
		  "netem: to=0.0.0.0/0: lies in none of the destinations that FILE allows, such as "
		  "10.0.0.0/8");
	is_answer(text, "delay=1ms,to=10.0.0.1", &nobody_knows,
		  "netem: to=10.0.0.1: is never shaped here (protect 10.0.0.1 in FILE)");
	is_answer(text, "delay=1ms,to=10.9.8.0/24", &nobody_knows,
		  "netem: to=10.9.8.0/24: is never shaped here (protect 10.9.0.0/16 in FILE)");
	is_answer(text, "delay=1ms,to=10.1.2.3,dev=wlan0", &nobody_knows,
		  "netem: device wlan0: not among the devices of FILE");
	is_answer("enabled yes\n", "delay=1ms,dev=eth0", &nobody_knows,
		  "netem: dev=eth0: no device may be named here (FILE has no devices): leave dev= "
		  "out, the route finds it");
	is_answer("enabled yes\nprotect 10.0.0.0/16", "delay=1ms,to=10.0.0.0/8", &nobody_knows, "");
	policy = read_policy(text);
	ok(sy_policy_allows_device(policy, "ib1", &err) == 0, "a device by a pattern");
	ok(sy_policy_allows_device(policy, "ib2", &err) < 0, "another: %s", err.text);
	is_int(sy_policy_protected(policy, spared, 8), 2, "protected networks");
	is_int(spared[0].prefix, 16, "the first of them");
	is_int(sy_policy_protected(policy, spared, 1), 1, "no more than there is room for");
	sy_policy_free(policy);
}

/* Verbs bypass the kernel: a card with RDMA is shaped only where an admin allows it. */
static void test_rdma(void)
{
	struct sy_policy *policy = read_policy("enabled yes\n");

	ok(sy_policy_allows_rdma(policy, "ens1f0np0", &err) < 0,
	   "a policy that says nothing of it");
	is_string(without_path(),
		  "netem: device ens1f0np0 has RDMA (RoCE): only its TCP/IP would be shaped, verbs "
		  "go past the kernel; an administrator may allow it (rdma allow in FILE)",
		  "refuses, and says what to do");
	sy_policy_free(policy);
	policy = read_policy("enabled yes\nrdma allow\n");
	ok(sy_policy_allows_rdma(policy, "ens1f0np0", &err) == 0, "rdma allow");
	sy_policy_free(policy);
	is_refused_file("rdma yes\n", ", line 1: rdma yes: expected refuse or allow");
}

/* What an admin copies: understood, and with the defaults that its comments promise. */
static void test_example(void)
{
	char text[8192];
	int fd = open("plugins/node/netem/netem.conf.example", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (!ok(length > 0, "plugins/node/netem/netem.conf.example, from the top of the project"))
		return;
	(void)close(fd);
	text[length] = '\0';
	is_answer(text, "delay=1s", &nobody_knows, "");
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line[0] == '#' && line[1] != ' ')
			line[0] = ' ';
	}
	is_answer(text, "delay=1s,to=10.1.0.0/16,dev=eth0",
		  &(struct sy_requester){.uid = 1234, .partition = "netlab", .exclusive = SY_YES},
		  "");
}

int main(void)
{
	if (!make_folder())
		return 1;
	test_missing();
	test_trust();
	test_owner();
	test_lines();
	test_ranges();
	test_ranges_of_models();
	test_lines_of_a_trace();
	test_links_of_sites();
	test_places();
	test_rdma();
	test_example();
	remove_folder();
	return done_testing();
}
