/* `steelyard-node doctor`: what one look has found, and the list of them. */
#ifndef STEELYARD_DOCTOR_CHECK_H
#define STEELYARD_DOCTOR_CHECK_H

#include <jansson.h>
#include <stdbool.h>

#include "job/config.h"

/* As `steelyard doctor` says them: nothing to do; jobs are weighed, and something is lost; nothing
 * can be weighed. */
enum sy_state { SY_OK, SY_WARNING, SY_MISSING, SY_STATES_OF_CHECKS };

struct sy_doctor {
	int root;		   /* "/", or a recorded tree, of which nothing is tried */
	const char *dir;	   /* its name */
	bool is_machine;	   /* it is "/" */
	bool as_root;		   /* who looks may do what samplers may */
	bool is_set_up;		   /* a scheduler here was told of Steelyard */
	bool folder_hangs;	   /* the record folder does not answer: nothing looks at it */
	const char *only;	   /* the name of the one check that is wanted; NULL: all */
	const char *plugstack;	   /* a plugstack.conf that was named; NULL: look for it */
	const char *settings;	   /* a pbs.conf that was named; NULL: look for it */
	const char *spool_dir;	   /* where records wait that their folder could not have */
	char place[SY_PATH_SIZE];  /* what `config` is from, and is to be mended in; "": nothing */
	char plugin[SY_PATH_SIZE]; /* the plugin's file, where plugstack.conf names it */
	struct sy_job_config config;
	json_t *checks; /* objects of name, state, found, advice */
};

/* Whether root leaves the folder of records to its owner: a spool is there, and the mark is his. */
bool sy_doctor_forwards(const struct sy_doctor *doctor);

bool sy_doctor_wants(const struct sy_doctor *doctor, const char *name);

/* Add what was found. `advice`: what to do, "" where nothing is. */
__attribute__((format(printf, 5, 6))) void sy_doctor_say(struct sy_doctor *doctor, const char *name,
							 enum sy_state state, const char *advice,
							 const char *format, ...);

/* How many are in this state. */
int sy_doctor_count(const struct sy_doctor *doctor, enum sy_state state);

#endif
