/* A child's first process, from its clone to its end, and the runner that it forks. All of the first
 * process is this: an interpreter would copy pages for each line that it runs. */
#ifndef CHILD_H
#define CHILD_H

#include "isolation.h"

int fork(void);

void pause_briefly(void);

/* Has this thread wake up without interrupting others (SCHED_BATCH, sched(7)). When its process is
 * killed, the kernel takes it apart in its time, on a processor where the worker may be about to
 * answer. */
void give_way(void);

/* Has the kernel reap the children of this process (wait(2)), and keeps descriptors for what each of
 * them has: the number of its gateway's, 0 for none. */
int prepare_parent(const struct settings *settings);

/* Makes a child: the id of its first process, -1 with errno. 0 in its runner, which has the
 * descriptors and the limits of one. */
long make_child(const struct settings *settings, const struct order *order);

/* The exit status of a process, or the signal that ended it, negative. Kills it after the time. */
int end_of(double pid, double milliseconds);

/* Ends this process immediately; with 0 all of its pid namespace, if it is a child's. */
void end_process(int status);

#endif
