/* Children of a template of Python's, for `children.py`, which calls these and keeps the lock of the
 * interpreter. tool-runner/PROTOCOL.md, "Templates", has the rules. */
#include "child.h"

#define EXPORTED __attribute__((visibility("default")))

static struct settings settings;

EXPORTED int mount(const char *path, const char *options) {
  return add_mount(&settings, path, options);
}

EXPORTED int limit(unsigned resource, unsigned long long soft, unsigned long long hard) {
  return add_limit(&settings, (struct limit){resource, soft, hard});
}

EXPORTED int filter(const void *program, size_t bytes) {
  return set_filter(&settings, program, bytes);
}

/* From now on this process can make children, with what was said before. The descriptor of their
 * gateway's channel, 0 for none; -1 with errno where it cannot. */
EXPORTED int prepare(int has_network, int has_terminals, int has_gateway, int wake) {
  struct failure failure;
  settings.has_network = has_network;
  settings.has_terminals = has_terminals;
  settings.has_gateway = has_gateway;
  settings.wake = wake;
  return can_isolate(&settings, &failure) ? prepare_parent(&settings) : -1;
}

/* As `make_child`. */
EXPORTED long child(const char *word, const char *directory, long pid, const unsigned *cpus,
                    unsigned cpu_count) {
  struct order order = {.word = word, .directory = directory, .pid = pid};
  for (unsigned index = 0; index < cpu_count; index++) add_cpu(&order, cpus[index]);
  return make_child(&settings, &order);
}
