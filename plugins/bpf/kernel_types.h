/* The few fields of the kernel's structures that are read. Where they are in the running kernel is
 * found out when the program is loaded (CO-RE), so nothing else of them need be here. */
#ifndef STEELYARD_BPF_KERNEL_TYPES_H
#define STEELYARD_BPF_KERNEL_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

typedef unsigned int u32;
typedef unsigned long long u64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct task_io_accounting {
	u64 rchar, wchar, read_bytes, write_bytes;
};

struct kuid {
	unsigned int val;
};

struct cred {
	struct kuid euid;
};

struct signal_struct {
	unsigned long cmin_flt;
};

struct task_struct {
	int pid;
	unsigned int flags;
	u64 start_time;
	u64 utime, stime;
	unsigned long min_flt, maj_flt;
	struct sched_entity se;
	struct task_io_accounting ioac;
	struct task_struct *real_parent, *group_leader;
	struct signal_struct *signal;
	struct pid *thread_pid;
	const struct cred *cred;
	char comm[16];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
