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

struct list_head {
	struct list_head *next;
};

struct atomic {
	int counter;
};

struct signal_struct {
	struct atomic live; /* threads that have not begun to end */
	struct list_head thread_head;
	unsigned long cmin_flt, maxrss;
	struct task_struct *group_exec_task; /* from Linux 5.17 on */
};

/* Pages of files, anonymous, swapped out, shared memory: each CPU holds back up to its batch. */
struct percpu_counter {
	long long count;
};

struct mm_struct {
	unsigned long env_start, env_end;
	struct percpu_counter rss_stat[4];
};

/* Before Linux 6.2. */
struct mm_rss_stat {
	struct {
		long long counter;
	} count[4];
};

struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
};

struct net {
	struct ns_common ns;
};

struct nsproxy {
	struct net *net_ns;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct cgrp_cset_link {
	struct cgroup *cgrp;
	struct list_head cgrp_link;
};

/* A task's cgroups, one in each hierarchy. */
struct css_set {
	struct cgroup *dfl_cgrp;
	struct list_head cgrp_links;
};

struct refcount {
	struct {
		int counter;
	} refs;
};

struct task_struct {
	struct refcount usage; /* 0: its memory is free */
	int pid;
	unsigned int flags;
	u64 start_time;
	u64 utime, stime;
	unsigned long min_flt, maj_flt;
	struct sched_entity se;
	struct task_io_accounting ioac;
	struct task_struct *real_parent, *group_leader;
	struct signal_struct *signal;
	struct mm_struct *mm;
	struct pid *thread_pid;
	const struct cred *cred;
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
	struct list_head thread_node;
	char comm[16];
	unsigned int __state; /* 0: it has a CPU or waits for one */
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
