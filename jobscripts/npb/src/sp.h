/* What the files of SP share. */
#ifndef SP_H
#define SP_H

#include "multipartition.h"

enum {
	SP_SYSTEMS = 3,		     /* matrices per line: waves of speed v, v + c and v - c */
	SP_ROW = 2 * SP_SYSTEMS + 5, /* what elimination leaves of a row */
	SP_CARRY = 2 * SP_ROW,	     /* two rows */
	SP_ANSWER = 2 * CFD_FIELDS
};

/* The pentadiagonal systems, and behind each the way to the next direction's variables. */
extern const struct mp_solver sp_solver;

/* The row (j, k) of dU/dt in the variables in which the equations along x are scalar. */
void sp_to_waves(const struct cfd_box *box, int j, int k);
/* And from those along z back: u += the change. */
void sp_from_waves(const struct cfd_box *box);

#endif
