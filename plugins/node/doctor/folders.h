/* The folders that samplers write into: is there room, may they, and is it mounted? */
#ifndef STEELYARD_DOCTOR_FOLDERS_H
#define STEELYARD_DOCTOR_FOLDERS_H

#include "doctor/check.h"

/* Ask for the record folder's file system, at most 2 s: sets `folder_hangs`. */
void sy_doctor_try_record_folder(struct sy_doctor *doctor);

/* Of whoever is not root only whether he can read the records. */
void sy_doctor_record_folder(struct sy_doctor *doctor);
void sy_doctor_run_folder(struct sy_doctor *doctor);

#endif
