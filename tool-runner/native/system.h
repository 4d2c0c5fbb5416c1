/* What all files have in common. They are linked without a C library, so that one build serves glibc
 * and musl: they name only functions that both have, by the same interface, and that the program
 * which loads the build has loaded before. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

long syscall(long number, ...);

/* What went wrong, for `report`: a step, and errno. */
struct failure {
  const char *step;
  int error;
};

/* Remembers a failed step; false. */
int fail(struct failure *failure, const char *step);

/* Writes text to a file of /proc; false if it cannot. */
int write_file(const char *path, const char *text);

/* Appends text, or a number, to a text of this size; the end of the text. */
char *append(char *end, const char *limit, const char *text);
char *append_number(char *end, const char *limit, long number);

/* Sends the worker a line of JSON: {"name": number}, or {"failed": "step: errno N"}. */
void report_number(int connection, const char *name, long number);
void report_failure(int connection, const struct failure *failure);

/* Calls for each number that a directory of /proc lists; of descriptors, not for the list's own. */
void each_number(const char *directory, void (*visit)(int number, void *data), void *data);

/* Closes every descriptor but one. */
void close_all_but(int kept);

/* Calls for each part of this process's memory that is private and of no file; false where the
 * kernel does not list it. */
int each_anonymous_mapping(void (*visit)(unsigned long start, unsigned long end, void *data), void *data);

/* The kernel's struct sigaction, which libraries do not show. */
struct kernel_action {
  void *handler;
  unsigned long flags;
  void *restorer;
  unsigned long mask;
};

#endif
