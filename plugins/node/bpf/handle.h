/* An open job of the kernel's count: what a process of ours keeps of it. */
#ifndef STEELYARD_BPF_HANDLE_H
#define STEELYARD_BPF_HANDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/layout.h"

#define SY_BPF_PROGRAMS 4
#define SY_BPF_MAPS	3 /* a job's own */

struct sy_bpf {
	uint64_t job; /* 0: the kernel does not count */
	const char *base;
	int program[SY_BPF_PROGRAMS]; /* as long as they are open they are not unloaded */
	int requests, adopt, join, read_job, set_ticks, map;
	int adopt_group, groups, unread;
	int folder; /* whoever has it open uses what is pinned there */
	struct sy_bpf_job *mapped;
	bool ticks;		  /* a timer in the kernel may read it */
	int64_t period_us;	  /* of that timer; 0: it is off */
	uint64_t taken;		  /* of what it has read */
	pid_t maker[SY_BPF_MAPS]; /* children that still make its maps; 0: none */
};

#endif
