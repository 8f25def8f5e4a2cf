/* The doctor: can jobs be measured on this node, and if not, what is there to do?
 *
 * `steelyard-node doctor` (program/cmd_doctor.c) first finds how Steelyard was set up here: by a
 * line of Slurm's plugstack.conf, or by /etc/steelyard/pbs.conf. Then it runs the checks below,
 * each of which looks at one thing: the program and the plugin, cgroups, meters, the kernel's
 * counts, the folder of records, the run folder, network conditions. A check adds an object to a
 * list: its name, a state (ok; warning: jobs are measured and something is lost; missing: nothing
 * can be measured), what was found, and what to do. `steelyard doctor` runs it on each node and
 * adds the user's side.
 *
 * It judges by trying: a file is made in the folder of records, tc is run in a network namespace of
 * its own, the plugin is loaded. All of that is gone when it ends. Only of Slurm it compares
 * version numbers, the plugin's with slurmd's. What may hang or die (a shared file system, a
 * program, a library) gets a process and a time limit. With --root a recorded tree is read and
 * nothing is tried.
 *
 * It repairs nothing, reads no job's data, and looks at no other node. */
#ifndef STEELYARD_DOCTOR_DOCTOR_H
#define STEELYARD_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "job/config.h"

/* The states of `steelyard doctor`: nothing to do; jobs are measured and something is lost;
 * nothing can be measured. */
enum sy_state { SY_OK, SY_WARNING, SY_MISSING, SY_STATES_OF_CHECKS };

struct sy_doctor {
	int root;		       /* "/", or a recorded tree, of which nothing is tried */
	const char *dir;	       /* its name */
	bool is_machine;	       /* it is "/" */
	bool as_root;		       /* the doctor has the rights of samplers */
	bool is_set_up;		       /* a scheduler on this node is configured for Steelyard */
	bool folder_hangs;	       /* the record folder does not answer: nothing looks at it */
	const char *only;	       /* the name of the one check that is wanted; NULL: all */
	const char *plugstack;	       /* a plugstack.conf that was named; NULL: look for it */
	const char *settings;	       /* a pbs.conf that was named; NULL: look for it */
	const char *spool_dir;	       /* where records wait that their folder could not have */
	char setup_file[SY_PATH_SIZE]; /* what `config` is from, and is to be mended in; "": nothing
					*/
	char plugin[SY_PATH_SIZE];     /* the plugin's file, where plugstack.conf names it */
	struct sy_job_config config;
	json_t *checks; /* objects of name, state, found, advice */
};

/* True when root leaves the record folder to its owner: a spool exists, and the folder has its
 * owner's mark. */
bool sy_doctor_uses_spool(const struct sy_doctor *doctor);

bool sy_doctor_is_selected(const struct sy_doctor *doctor, const char *name);

/* Add what was found. `advice`: what to do, "" where nothing is. */
__attribute__((format(printf, 5, 6))) void sy_doctor_add(struct sy_doctor *doctor, const char *name,
							 enum sy_state state, const char *advice,
							 const char *format, ...);

/* How many are in this state. */
int sy_doctor_count(const struct sy_doctor *doctor, enum sy_state state);

/* Fill in `config`, `setup_file` and `plugin`, and say what is wrong with them. */
void sy_doctor_find_setup(struct sy_doctor *doctor);

/* Find the file where --plugstack names none: slurm.conf's PlugStackConfig, else plugstack.conf
 * in the same folder. 0: found, and `setup_file`, `plugin` and `config` are set from it and
 * reported; -1: none. */
int sy_doctor_check_plugstack(struct sy_doctor *doctor);

/* This very program, and the one that jobs are measured with. */
void sy_doctor_check_programs(struct sy_doctor *doctor);

/* Does Slurm's plugin load, and was it built for the slurmd that is here? And does the program
 * exist that writes AdminComment? */
void sy_doctor_check_plugin(struct sy_doctor *doctor);

/* A program in the folder of node_program, or in the folder of this program: its path; false:
 * none. */
bool sy_doctor_find_sibling(const struct sy_doctor *doctor, const char *name,
			    char path[SY_PATH_SIZE]);

/* Call `visit` with the visible names in a folder below `top` until it returns false. */
void sy_doctor_visit_names(int top, const char *name, bool (*visit)(void *, const char *),
			   void *context);

/* Ask for the record folder's file system, at most 2 s: sets `folder_hangs`. */
void sy_doctor_try_record_folder(struct sy_doctor *doctor);

/* Without root only whether the caller can read the records. */
void sy_doctor_check_record_folder(struct sy_doctor *doctor);
void sy_doctor_check_run_folder(struct sy_doctor *doctor);

void sy_doctor_check_cgroups(struct sy_doctor *doctor);
void sy_doctor_check_kernel_counts(struct sy_doctor *doctor);

void sy_doctor_check_energy(struct sy_doctor *doctor);

/* Reports nothing where no value is configured. */
void sy_doctor_check_idle_power(struct sy_doctor *doctor);

/* Programs, kernel, policy, and what was left behind. */
void sy_doctor_check_network(struct sy_doctor *doctor);

void sy_doctor_check_records(struct sy_doctor *doctor);
void sy_doctor_check_sweep(struct sy_doctor *doctor);
void sy_doctor_check_spool(struct sy_doctor *doctor);

#endif
