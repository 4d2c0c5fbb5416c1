/* Isolates a child of a template: namespaces, mounts, capabilities, system calls, limits. */
#ifndef ISOLATION_H
#define ISOLATION_H

#include "system.h"

enum {
  max_mounts = 8,
  max_limits = 16,
  max_cpus = 1024,
  max_instructions = 4096,
  instruction_bytes = 8,
  max_text = 256,
};

struct limit {
  unsigned resource;
  unsigned long long soft, hard;
};

/* What the worker says of the children of a template, and the descriptor of their wake channel. */
struct settings {
  int has_network, has_terminals, has_gateway, wake;
  unsigned mount_count, limit_count;
  unsigned short filter_length;
  struct {
    char path[max_text], options[max_text];
  } mounts[max_mounts];
  struct limit limits[max_limits];
  unsigned char filter[max_instructions * instruction_bytes];
};

/* A child, as it was ordered. */
struct order {
  const char *word, *directory;
  long pid;
  unsigned long cpus[max_cpus / (8 * sizeof(unsigned long))];
  int has_cpus;
};

/* Each is false where there is no room, or the program is none. */
int add_mount(struct settings *settings, const char *path, const char *options);
int add_limit(struct settings *settings, struct limit limit);
int set_filter(struct settings *settings, const void *filter, size_t bytes);

/* One of the order's processors. */
void add_cpu(struct order *order, unsigned cpu);

/* Each step is false, with the failure, where it fails. */

/* Whether processes can be given ids here; gives the template the worker's limits, which bound all
 * of its children together. */
int can_isolate(const struct settings *settings, struct failure *failure);

/* Makes the first process of new namespaces: its id, 0 in it, -1 with errno. */
long clone_first(const struct settings *settings);

/* Gives the child its user id from outside, and forbids further user namespaces. */
int enter_user(struct failure *failure);

/* Gives this id to the next process of the child's pid namespace. */
int set_next_pid(long pid, struct failure *failure);

/* Mounts what is the child's own, and hides what is the template's. */
int mount_own(const struct settings *settings, const char *directory, struct failure *failure);

/* Takes from the child, for good, what tools may not have. It is in its control group. */
int drop_privileges(const struct settings *settings, const struct order *order,
                    struct failure *failure);

/* Puts this process, and what it starts, under the limits of tools. */
int limit_process(const struct settings *settings, struct failure *failure);

#endif
