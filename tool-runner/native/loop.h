/* Node's process behind a fork: its event loop, and its end. */
#ifndef LOOP_H
#define LOOP_H

#include "system.h"

struct uv_loop;

/* Undoes that V8 keeps its heap out of forks (MADV_DONTFORK). False if it cannot. */
int let_memory_be_copied(void);

/* Whether all other threads sleep, so that none of them holds a lock. */
int others_sleep(void);

/* Gives a forked process an event loop, descriptors and random numbers of its own. False if it
 * cannot. */
int renew(struct uv_loop *loop);

/* Calls `on_rest` each time that nothing keeps the event loop alive: so Node itself never ends a
 * forked process, for which it would wait for threads that are not there. */
int watch_rest(struct uv_loop *loop, void (*on_rest)(void));

/* Whether something keeps the event loop alive, beside `watch_rest`. */
int is_kept_alive(void);

#endif
