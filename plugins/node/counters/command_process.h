/* The process of a command that is measured: its start, and signals meanwhile. */
#ifndef STEELYARD_COUNTERS_COMMAND_PROCESS_H
#define STEELYARD_COUNTERS_COMMAND_PROCESS_H

#include <sys/types.h>

#include "counters/command_usage.h"

/* Once, before anything is started: SIGCHLD has its default action. Where it is ignored, as a
 * parent may have left it, no child can be waited for. The command gets the earlier setting back.
 */
void sy_default_sigchld(void);

/* A shell that has executed us may have left us its children, which are not the command's. Then a
 * child of this process returns from here, and this one ends as that child does, and passes signals
 * on to it. */
void sy_leave_earlier_children(void);

/* A signal descriptor: children's ends, and signals to pass on to the command. A full disk and a
 * closed reader are errors of writing, not signals; the command gets the earlier settings back. */
int sy_open_signals(void);

/* Start a command: its process id, or -1. A command that cannot be executed exits with 127 (not
 * found) or 126, as in a shell. */
pid_t sy_start_command(char **argv, struct sy_exact *exact);

/* Where its end could be waited for only like this: its exit code. */
int sy_run_unmeasured(char **argv);

#endif
