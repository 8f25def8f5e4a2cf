/* Parsers of the kernel's counter files: pure functions from text to numbers.
 *
 * Each returns 0, or -1 when the text is not what it should be; then nothing is set. Sources:
 * proc(5), Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst, Documentation/accounting/psi.rst
 * of the kernel. */
#ifndef STEELYARD_COUNTERS_PARSE_H
#define STEELYARD_COUNTERS_PARSE_H

#include <stdint.h>
#include <stdbool.h>
#include <sys/types.h>

/* /proc/PID/stat; times in clock ticks, rss in pages. */
struct sy_stat {
	char state;
	pid_t ppid, session;
	bool is_forked;		/* it has executed no program since */
	int64_t cutime, cstime; /* CPU of children it has waited for */
	int64_t threads;	/* 0: the kernel was taking it away */
	int64_t starttime;	/* since boot */
	int64_t rss;
};

/* A whole number, not negative, that ends at white space or at the end. */
int sy_parse_number(const char *text, int64_t *value);

/* /proc/PID/io, bytes: rchar, wchar, read, write. */
int sy_parse_io(const char *text, int64_t io[4]);

/* The command's name may hold blanks and brackets: "12 (a) b) S 1 …". */
int sy_parse_stat(const char *text, struct sy_stat *stat);

/* The number behind `key` in lines "key number" (cpu.stat, memory.stat). */
int sy_parse_keyed(const char *text, const char *key, int64_t *value);

/* `some total=` of /proc/pressure/X or X.pressure, µs. */
int sy_parse_pressure(const char *text, int64_t *some_us);

/* OutSegs and RetransSegs of /proc/net/snmp, by the names in its first line of Tcp. */
int sy_parse_snmp(const char *text, int64_t *sent, int64_t *retransmitted);

/* What all CPUs have worked since boot, clock ticks: `cpu` of /proc/stat without idle, iowait and
 * steal. A guest's time is in user and nice already. */
int sy_parse_busy(const char *text, int64_t *ticks);

/* What the host of a virtual machine gave to others while its CPUs had work, clock ticks since
 * boot: `steal` of /proc/stat. */
int sy_parse_stolen(const char *text, int64_t *ticks);

/* The process id given last on this machine: the last word of /proc/loadavg. */
int sy_parse_loadavg(const char *text, int64_t *last_pid);

/* Does /proc/PID/cgroup say that the process is in `path` or below it: in the hierarchy of a
 * controller, "" for version 2, NULL for any? */
int sy_parse_in_cgroup(const char *text, const char *path, const char *controller);

#endif
