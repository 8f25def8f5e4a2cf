/* Messages to a sampler (docs/formats.md part 4), and the job's fields and tags that they set. */
#ifndef STEELYARD_RECORD_MESSAGE_GRAMMAR_H
#define STEELYARD_RECORD_MESSAGE_GRAMMAR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define SY_MESSAGE_SIZE	  4096
#define SY_TAG_KEY_SIZE	  65 /* with its NUL */
#define SY_TAG_VALUE_SIZE 1024
#define SY_GPUS_SIZE	  1024 /* of each list of `gpus` */

/* Messages are datagrams `WORD ARGUMENTS`, to a socket of root's. */
enum sy_word {
	/* root PID [FAULTS [SINCE_NS]]: descendants of PID are the job's; repeatable. FAULTS: page
	 * faults of children it has waited for. SINCE_NS: PID registered itself in the kernel's
	 * count then (CLOCK_MONOTONIC); 0: not. */
	SY_WORD_ROOT,
	SY_WORD_CGROUP, /* cgroup PATH: the job's, as in /proc/PID/cgroup */
	/* counted CPU_US: what that cgroup had counted before the job's first task. It is sent
	 * before `cgroup`. */
	SY_WORD_COUNTED,
	SY_WORD_TAG,	   /* tag KEY=VALUE: the last value counts */
	SY_WORD_RATE,	   /* rate HZ: 0.001 to 1000; 0: totals only */
	SY_WORD_EXCLUSIVE, /* exclusive yes|no: job.exclusive; after a no a yes changes nothing */
	SY_WORD_JOB,	   /* job FIELD VALUE: the last value counts */
	/* done PID CPU_US [RCHAR WCHAR READ WRITE]: root PID ends; final counters, reaped children
	 * included (µs, bytes). Without bytes the job's I/O is null, unless the kernel counts. */
	SY_WORD_DONE,
	SY_WORD_PEAK,  /* peak BYTES: largest resident set of a process that a root waited for */
	SY_WORD_CACHE, /* cache JSON: `cache` of the record, below 4096 bytes */
	SY_WORD_UNMET, /* unmet FIELD SENTENCE: why cache or network_conditions stays null */
	/* gpus LISTED OPEN DENIED: lists with commas, "-": none. LISTED: numbers, UUIDs, or
	 * "shared"; OPEN, DENIED: devices below /dev. */
	SY_WORD_GPUS,
	SY_WORD_TOTALS, /* totals [NUMBER]: is answered, sampler/messages.h */
	/* leave: `end` once no process named by `root` is left. Gone without it (--watch): the
	 * record is incomplete. */
	SY_WORD_LEAVE,
	SY_WORD_LOST, /* lost, late: the job's end, its begin was not reported: incomplete */
	SY_WORD_LATE,
	/* intime: of PBS; nothing of the job had begun at the last answer, so that a late sampler
	 * has missed nothing. */
	SY_WORD_INTIME,
	SY_WORD_SESSION, /* session SID: this session's processes */
	SY_WORD_ATTACH,	 /* attach PID: this process and its descendants */
	SY_WORD_END,	 /* end: last sample, record, exit */
};

struct sy_message {
	enum sy_word word;
	pid_t pid;	   /* root, done, session, attach */
	int64_t number[5]; /* done: µs, rchar, wchar, read, write; peak: bytes; counted:
			    * µs; totals: the question's number, or -1 */
	bool has_bytes;	   /* done: the last four */
	double rate_hz;
	bool exclusive;
	char key[SY_TAG_KEY_SIZE]; /* tag, job, unmet */
	const char
	    *value; /* tag, job, cgroup, cache, unmet, gpus: inside the text that was parsed */
};

/* Parse one message: 0, or -1 with what is wrong with it. */
int sy_message_parse(const char *text, struct sy_message *message, struct sy_error *err);

/* The notes about the job from messages, each an object; `conditions` has the record's "cache",
 * under "unmet" the reason for each field whose requested condition is missing, and under "gpus"
 * the tasks' reports about theirs. */
struct sy_job_notes {
	json_t *job, *tags, *conditions;
};

/* Add a message about the job to the notes; other messages are ignored. */
void sy_message_apply(const struct sy_message *message, const struct sy_job_notes *notes);

#endif
