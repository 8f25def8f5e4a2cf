/* Parsers of kernel counter files, fed with recorded text. */
#include "tap.h"

#include "counters/parse.h"

static void test_io(void)
{
	int64_t io[4] = {0};

	ok(sy_parse_io("rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n"
		       "read_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 8192\n",
		       io) == 0,
	   "/proc/PID/io");
	is_int(io[0], 323934931, "rchar");
	is_int(io[1], 323929600, "wchar");
	is_int(io[2], 4096, "read_bytes");
	is_int(io[3], 323932160, "write_bytes, not cancelled_write_bytes");
	ok(sy_parse_io("rchar: 1\nwchar: 2\n", io) < 0, "a kernel without byte counts");
	ok(sy_parse_io("", io) < 0, "an empty file");
	is_int(io[0], 323934931, "nothing is set on failure");
}

static void test_stat(void)
{
	struct sy_stat stat;

	ok(sy_parse_stat("4711 (a) b) R 12 4711 4711 34816 -1 4194304 113 5 0 0 42 17 300 9 20 0 1 "
			 "0 8192 2576384 243 18446744073709551615 94 95 1 0 0\n",
			 &stat) == 0,
	   "/proc/PID/stat with \"a) b\" for a name");
	is_int(stat.ppid, 12, "ppid");
	is_int(stat.state, 'R', "state");
	is_int(stat.cutime, 300, "cutime");
	is_int(stat.cstime, 9, "cstime");
	is_int(stat.starttime, 8192, "starttime");
	is_int(stat.rss, 243, "rss");
	ok(sy_parse_stat("1 (x) S 0", &stat) < 0, "a line cut short");
	ok(sy_parse_stat("1 x S 0 1 1", &stat) < 0, "no name in brackets");
	ok(sy_parse_stat("4711 (a) R 12 4711 4711 3481-1 -1 4194304 113 5 0 0 42 17 300 9 20 0 1 0 "
			 "8192 2576384 243\n",
			 &stat) < 0,
	   "two fields with no blank between them");
	ok(sy_parse_stat("", &stat) < 0, "nothing");
}

static void test_cgroup(void)
{
	const char *cpu = "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n";
	const char *place = "5:cpuacct:/slurm_n1/uid_0/job_5/step_batch\n0::/\n";
	int64_t value = 7;

	ok(sy_parse_keyed(cpu, "user_usec", &value) == 0 && value == 1000000, "cpu.stat");
	ok(sy_parse_keyed(cpu, "usec", &value) < 0, "a part of a key is no key");
	ok(sy_parse_keyed("anon 4096\nanon_thp 9\n", "anon", &value) == 0 && value == 4096,
	   "memory.stat");
	ok(sy_parse_number("987654321\n", &value) == 0 && value == 987654321, "cpuacct.usage");
	ok(sy_parse_number("max\n", &value) < 0, "max is no number");
	ok(sy_parse_number("-5\n", &value) < 0, "a counter is not negative");
	ok(sy_parse_number("99999999999999999999\n", &value) < 0, "too large for 63 bits");
	ok(sy_parse_in_cgroup(place, "/slurm_n1/uid_0/job_5", NULL) == 0,
	   "a process in the job's group");
	ok(sy_parse_in_cgroup(place, "/slurm_n1/uid_0/job_5/step_batch", NULL) == 0,
	   "the same group");
	ok(sy_parse_in_cgroup(place, "/slurm_n1/uid_0/job_55", NULL) < 0, "another job");
	ok(sy_parse_in_cgroup(place, "/slurm_n1/uid_0/job", NULL) < 0, "a beginning is not enough");
	place = "6:freezer:/a\n4:cpu,cpuacct:/b\n1:cpuset:/c\n0::/d\n";
	ok(sy_parse_in_cgroup(place, "/b", "cpuacct") == 0, "in the hierarchy that counts CPU");
	ok(sy_parse_in_cgroup(place, "/a", "cpuacct") < 0, "in another");
	ok(sy_parse_in_cgroup(place, "/c", "cpu") < 0, "a beginning of a name is not it");
	ok(sy_parse_in_cgroup(place, "/d", "") == 0 && sy_parse_in_cgroup(place, "/b", "") < 0,
	   "version 2");
}

static void test_node(void)
{
	int64_t a = 0, b = 0;

	ok(sy_parse_pressure("some avg10=0.12 avg60=0.03 avg300=0.00 total=123456\n"
			     "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n",
			     &a) == 0 &&
	       a == 123456,
	   "/proc/pressure/io: some, not full");
	ok(sy_parse_pressure("full avg10=0.00 total=99\n", &a) < 0, "no line of some");
	ok(sy_parse_busy("cpu  100 20 30 4000 500 6 7 80 9 1\ncpu0 1 2 3 4 5 6 7 8 9 0\n", &a) ==
		   0 &&
	       a == 163,
	   "/proc/stat: neither idle, iowait nor steal; a guest's time once");
	ok(sy_parse_stolen("cpu  100 20 30 4000 500 6 7 80 9 1\n", &a) == 0 && a == 80,
	   "/proc/stat: steal");
	ok(sy_parse_stolen("cpu  100 20 30 4000 500 6 7\n", &a) < 0, "a kernel without steal");
	ok(sy_parse_busy("cpu0 1 2 3 4 5 6 7\n", &a) < 0, "the sum of all CPUs is missing");
	ok(sy_parse_busy("cpu  1 2 3 4 5 6\n", &a) < 0, "softirq is missing");
	ok(sy_parse_snmp(
	       "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
	       "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs OutSegs "
	       "RetransSegs InErrs\nTcp: 1 200 120000 -1 30 55 5000 12 0\nUdp: A\nUdp: 1\n",
	       &a, &b) == 0,
	   "/proc/net/snmp");
	is_int(a, 5000, "OutSegs");
	is_int(b, 12, "RetransSegs");
	ok(sy_parse_snmp("Ip: A\nIp: 1\n", &a, &b) < 0, "no Tcp");
	ok(sy_parse_snmp("Tcp: OutSegs RetransSegs\nTcp: 1\n", &a, &b) < 0, "a value is missing");
	ok(sy_parse_loadavg("0.32 0.55 0.29 1/172 25585\n", &a) == 0 && a == 25585, "last pid");
	ok(sy_parse_loadavg("\n", &a) < 0, "no loadavg");
}

int main(void)
{
	test_io();
	test_stat();
	test_cgroup();
	test_node();
	return done_testing();
}
