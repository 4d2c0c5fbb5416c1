/* A child's first process, from its clone to its end, and the runner that it forks. */
#ifndef CHILD_H
#define CHILD_H

#include "isolation.h"

enum {
  /* The worker's end of the runner's wake channel, as every parked runner has it. */
  wake_descriptor = 3,
  /* Looks at threads that run before the template gives up, each after a millisecond. */
  max_looks = 200,
};

int fork(void);

void pause_briefly(void);

/* Has the kernel reap the children of this process (wait(2)), and keeps a descriptor for the gateway
 * of each: its number. */
int prepare_parent(const struct settings *settings);

/* Isolates this process and forks its runner. Returns in the runner, which has the descriptors and
 * the limits of one. */
void become_runner(const struct settings *settings, const struct order *order);

/* The exit status of a process, or the signal that ended it, negative. Kills it after the time. */
int end_of(double pid, double milliseconds);

/* Ends this process immediately; with 0 all of its pid namespace, if it is a child's. */
void end_process(int status);

#endif
