#include "counters/parse.h"

#include "base/number.h"

#include <stdbool.h>
#include <string.h>

static const char *skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

static const char *next_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return end ? end + 1 : text + strlen(text);
}

int sy_parse_number(const char *text, int64_t *value)
{
	int64_t result;
	const char *end = sy_number(skip_blanks(text), &result);

	if (!end || (*end && *end != '\n' && *end != ' '))
		return -1;
	*value = result;
	return 0;
}

/* "key: number" or "key number" at the start of a line: what follows the number, or NULL. */
static const char *keyed(const char *text, const char *key, size_t length, char separator,
			 int64_t *value)
{
	for (; *text; text = next_line(text))
		if (!strncmp(text, key, length) && text[length] == separator)
			return sy_number(skip_blanks(text + length + 1), value);
	return NULL;
}

int sy_parse_keyed(const char *text, const char *key, int64_t *value)
{
	return keyed(text, key, strlen(key), ' ', value) ? 0 : -1;
}

/* In the kernel's order, so that each line is looked at once. */
int sy_parse_io(const char *text, int64_t io[4])
{
	int64_t result[4];

	text = keyed(text, "rchar", 5, ':', &result[0]);
	text = text ? keyed(text, "wchar", 5, ':', &result[1]) : NULL;
	text = text ? keyed(text, "read_bytes", 10, ':', &result[2]) : NULL;
	text = text ? keyed(text, "write_bytes", 11, ':', &result[3]) : NULL;
	if (!text)
		return -1;
	memcpy(io, result, sizeof(result));
	return 0;
}

/* The next field of stat, which may be negative (tty, priority). */
static const char *stat_field(const char *text, int64_t *value)
{
	bool negative;

	if (*text != ' ')
		return NULL;
	text = skip_blanks(text);
	negative = *text == '-';
	text = sy_number(text + negative, value);
	if (text && negative)
		*value = -*value;
	return text;
}

#define PF_FORKNOEXEC 0x40 /* <linux/sched.h> */

int sy_parse_stat(const char *text, struct sy_stat *stat)
{
	enum {
		PPID = 4,
		SESSION = 6,
		FLAGS = 9,
		CUTIME = 16,
		CSTIME,
		THREADS = 20,
		STARTTIME = 22,
		VSIZE,
		RSS
	};
	const char *rest = strrchr(text, ')');
	int64_t field[RSS + 1] = {0};
	char state;

	if (!rest || rest[1] != ' ' || !rest[2])
		return -1;
	state = rest[2];
	rest += 3;
	for (int i = PPID; i <= RSS; i++) {
		rest = stat_field(rest, &field[i]);
		if (!rest)
			return -1;
	}
	*stat = (struct sy_stat){
	    .state = state,
	    .ppid = (pid_t)field[PPID],
	    .session = (pid_t)field[SESSION],
	    .is_forked = field[FLAGS] & PF_FORKNOEXEC,
	    .cutime = field[CUTIME],
	    .cstime = field[CSTIME],
	    .threads = field[THREADS],
	    .starttime = field[STARTTIME],
	    .rss = field[RSS],
	};
	return 0;
}

int sy_parse_pressure(const char *text, int64_t *some_us)
{
	const char *total;

	if (strncmp(text, "some ", 5) != 0)
		return -1;
	total = strstr(text, "total=");
	if (!total || total > next_line(text))
		return -1;
	return sy_number(total + 6, some_us) ? 0 : -1;
}

/* The number in the column of `values` that is called `name` in `names`. */
static int column(const char *names, const char *values, const char *name, int64_t *result)
{
	size_t length = strlen(name);

	while (*names && *names != '\n' && *values && *values != '\n') {
		size_t word = strcspn(names, " \n");

		if (word == length && !strncmp(names, name, length))
			return sy_number(values, result) ? 0 : -1;
		names = skip_blanks(names + word);
		values = skip_blanks(values + strcspn(values, " \n"));
	}
	return -1;
}

int sy_parse_snmp(const char *text, int64_t *sent, int64_t *retransmitted)
{
	int64_t out, again;
	const char *names, *values;

	for (names = text; *names; names = next_line(names))
		if (!strncmp(names, "Tcp: ", 5))
			break;
	values = next_line(names);
	if (!*names || strncmp(values, "Tcp: ", 5) != 0)
		return -1;
	if (column(names, values, "OutSegs", &out) < 0 ||
	    column(names, values, "RetransSegs", &again) < 0)
		return -1;
	*sent = out;
	*retransmitted = again;
	return 0;
}

enum cpu_field { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, CPU_FIELDS };

/* The first `count` numbers of the line of all CPUs. */
static int parse_cpu(const char *text, int64_t *field, int count)
{
	if (strncmp(text, "cpu ", 4) != 0)
		return -1;
	text += 4;
	for (int i = 0; i < count; i++) {
		text = sy_number(skip_blanks(text), &field[i]);
		if (!text)
			return -1;
	}
	return 0;
}

int sy_parse_stolen(const char *text, int64_t *ticks)
{
	int64_t field[CPU_FIELDS];

	if (parse_cpu(text, field, CPU_FIELDS) < 0)
		return -1;
	*ticks = field[STEAL];
	return 0;
}

int sy_parse_busy(const char *text, int64_t *ticks)
{
	int64_t field[CPU_FIELDS];

	if (parse_cpu(text, field, STEAL) < 0)
		return -1;
	*ticks = field[USER] + field[NICE] + field[SYSTEM] + field[IRQ] + field[SOFTIRQ];
	return 0;
}

int sy_parse_loadavg(const char *text, int64_t *last_pid)
{
	const char *word = strrchr(text, ' ');

	return word ? sy_parse_number(word + 1, last_pid) : -1;
}

/* Whether a line "NUMBER:CONTROLLER,…:PATH" is of that controller, "" for version 2. */
static bool is_of_controller(const char *list, const char *end, const char *controller)
{
	size_t length = strlen(controller);

	for (const char *at = list; at <= end; at += strcspn(at, ",:") + 1)
		if (!strncmp(at, controller, length) && strchr(",:", at[length]))
			return true;
	return false;
}

int sy_parse_in_cgroup(const char *text, const char *path, const char *controller)
{
	size_t length = strlen(path);

	for (; *text; text = next_line(text)) {
		const char *list = strchr(text, ':'),
			   *group_path = list ? strchr(list + 1, ':') : NULL;

		if (!group_path || group_path > next_line(text))
			continue;
		if (controller && !is_of_controller(list + 1, group_path, controller))
			continue;
		group_path++;
		if (!strncmp(group_path, path, length) &&
		    (group_path[length] == '/' || group_path[length] == '\n' ||
		     !group_path[length]))
			return 0;
	}
	return -1;
}
