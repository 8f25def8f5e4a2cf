/* What the files of BT share. */
#ifndef BT_H
#define BT_H

#include "multipartition.h"

/* The block-tridiagonal systems; the carry is the last row: its upper block and right side. */
extern const struct mp_solver bt_solver;

enum {
	BT_COLUMNS = CFD_FIELDS + 1, /* a block and the right side */
	BT_STORE = CFD_FIELDS * BT_COLUMNS
};

#endif
