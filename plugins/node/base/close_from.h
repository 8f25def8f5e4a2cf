/* Closing what a program that we start must not inherit. */
#ifndef STEELYARD_BASE_CLOSE_FROM_H
#define STEELYARD_BASE_CLOSE_FROM_H

/* Every descriptor from `first` on: system calls only, for the moment between fork and exec. */
void sy_close_from(int first);

#endif
