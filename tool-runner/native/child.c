/* See child.h. */
#include "child.h"

#include <fcntl.h>
#include <string.h>

enum {
  local = 1,
  streams = 1,
  close_on_exec = 0x80000,
  child_ended = 17,
  /* From the runner: only its exit with 0 remains. A tool that sends it ends its own sandbox. */
  done = 64,
  kill_signal = 9,
  set_mask = 2,
  mask_bytes = 8,
  no_hang = 1,
  signal_base = 128,
  max_address = 108,
  batch = 3,
  /* Bytes: it is not worth a call for less. */
  worth_unmapping = 65536,
  brief_ns = 1000000,
};

static const char socket_path[] = "/sandbox/template/socket";
static const char go[] = "go\n";

/* Whether this process is, or comes from, a child. */
static int is_child;
/* What the template did at the end of a child before. */
static struct kernel_action on_child_end;
static long gateway_descriptor;

/* By purpose; the first process keeps the first. */
static const char *const roles[] = {"report", "wake", "out", "err", "gateway"};
enum role { report, wake, out, err, gateway, all_roles };

int prepare_parent(const struct settings *settings) {
  /* A child's connections would get their numbers. */
  for (long standard = 0; standard <= 2; standard++)
    if (syscall(SYS_fcntl, standard, F_GETFD) < 0)
      syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
  struct kernel_action ignore = {(void *)1, 0, NULL, 0};
  syscall(SYS_rt_sigaction, child_ended, &ignore, &on_child_end, mask_bytes);
  if (settings->has_gateway) gateway_descriptor = syscall(SYS_fcntl, 0, F_DUPFD_CLOEXEC, 3);
  return (int)gateway_descriptor;
}

static long connected(const char *word, const char *role, struct failure *failure) {
  struct {
    unsigned short family;
    char path[max_address];
  } address = {local, {0}};
  memcpy(address.path, socket_path, sizeof socket_path);
  char line[max_text + 16], *limit = line + sizeof line;
  char *end = append(append(append(append(line, limit, word), limit, " "), limit, role), limit, "\n");
  long connection = syscall(SYS_socket, local, streams | close_on_exec, 0);
  if (connection < 0 || syscall(SYS_connect, connection, &address, sizeof address) < 0 ||
      syscall(SYS_write, connection, line, end - line) < 0) {
    fail(failure, "connection");
    return -1;
  }
  return connection;
}

static int is_let_go(long connection) {
  char line[sizeof go - 1];
  return syscall(SYS_read, connection, line, sizeof line) == sizeof line &&
         memcmp(line, go, sizeof line) == 0;
}

/* Gives memory back that has neither of two addresses in it. */
static void unmap_unless_used(unsigned long start, unsigned long end, void *data) {
  const unsigned long *used = data;
  int is_used = (start <= used[0] && used[0] < end) || (start <= used[1] && used[1] < end);
  if (end - start >= worth_unmapping && !is_used) syscall(SYS_munmap, start, end - start);
}

/* Gives back the copy of the interpreter's memory, while nobody waits for it: the kernel would take
 * it apart at the end of the call, on the processor that somebody wants. From then on this process
 * may use code, the stack and errno, and nothing else: no variable is sure to be there. A shadow
 * stack, which nothing turns on here, would be lost. */
static void unmap_interpreter(void) {
  unsigned long used[] = {(unsigned long)&used, (unsigned long)&errno};
  each_anonymous_mapping(unmap_unless_used, used);
}

/* Reaps the processes of the namespace until the runner has ended, reports that, and ends. */
static void wait_for(long runner, int connection, unsigned long awaited) {
  give_way();
  close_all_but(connection);
  unmap_interpreter();
  long code = -1;
  while (code < 0) {
    long signal = syscall(SYS_rt_sigtimedwait, &awaited, NULL, NULL, mask_bytes);
    if (signal == done) code = 0;
    int status;
    long pid;
    while (code < 0 && (pid = syscall(SYS_wait4, -1, &status, no_hang, NULL)) > 0)
      if (pid == runner) code = (status & 0x7f) ? signal_base + (status & 0x7f) : status >> 8 & 0xff;
  }
  report_number(connection, "exit-code", code);
  syscall(SYS_exit_group, 0);
}

/* Puts a descriptor in the place of another, open in the same way. */
static int replace(long source, int target, int flags) {
  long status = syscall(SYS_fcntl, target, F_GETFL, 0);
  if (syscall(SYS_dup3, source, target, flags) < 0) return 0;
  if (status >= 0) syscall(SYS_fcntl, target, F_SETFL, status & O_NONBLOCK);
  return 1;
}

static int take_descriptors(const struct settings *settings, const long connections[all_roles]) {
  int taken = replace(connections[out], 1, 0) && replace(connections[err], 2, 0) &&
              syscall(SYS_dup3, connections[wake], settings->wake, O_CLOEXEC) >= 0 &&
              (!settings->has_gateway ||
               syscall(SYS_dup3, connections[gateway], gateway_descriptor, O_CLOEXEC) >= 0);
  for (int role = 0; role < all_roles; role++) {
    long connection = connections[role];
    if (connection >= 0) syscall(SYS_close, connection);
  }
  return taken;
}

/* Isolates this process and forks its runner. Returns in the runner. */
static void become_runner(const struct settings *settings, const struct order *order) {
  struct failure failure = {"fork", 0};
  long connections[all_roles] = {-1, -1, -1, -1, -1};
  struct kernel_action standard = {0};
  unsigned long everything = ~0UL, mask;
  const unsigned long awaited = 1UL << (child_ended - 1) | 1UL << (done - 1);
  int connections_wanted = settings->has_gateway ? all_roles : gateway;
  for (int role = 0; role < connections_wanted; role++) {
    connections[role] = connected(order->word, roles[role], &failure);
    if (connections[role] < 0) goto failed;
  }
  /* Signals to a process group cross pid namespaces: without a session of its own, the child would
   * reach the template. In any sandbox the runner leads none. */
  syscall(SYS_setsid);
  if (!enter_user(&failure) || !set_next_pid(order->pid, &failure) ||
      !mount_own(settings, order->directory, &failure))
    goto failed;
  if (!is_let_go(connections[report])) syscall(SYS_exit_group, 0);
  if (!drop_privileges(settings, order, &failure)) goto failed;
  /* A first process gets no signal from inside that it neither handles nor blocks. */
  syscall(SYS_rt_sigprocmask, set_mask, &everything, &mask, mask_bytes);
  syscall(SYS_rt_sigaction, child_ended, &standard, NULL, mask_bytes);
  is_child = 1;
  /* That of the C library, for what libraries do at a fork. */
  long runner = fork();
  if (runner < 0) goto failed;
  if (runner > 0) wait_for(runner, (int)connections[report], awaited);
  if (syscall(SYS_getpid) != order->pid) goto failed;
  if (!take_descriptors(settings, connections) || !limit_process(settings, &failure))
    syscall(SYS_exit_group, 1);
  syscall(SYS_rt_sigaction, child_ended, &on_child_end, NULL, mask_bytes);
  syscall(SYS_rt_sigprocmask, set_mask, &mask, NULL, mask_bytes);
  return;
failed:
  if (connections[report] >= 0) report_failure((int)connections[report], &failure);
  syscall(SYS_exit_group, 1);
}

long make_child(const struct settings *settings, const struct order *order) {
  long first = clone_first(settings);
  if (first == 0) become_runner(settings, order);
  return first;
}

void give_way(void) {
  const int priority = 0;
  syscall(SYS_sched_setscheduler, 0, batch, &priority);
}

void pause_briefly(void) {
  const struct {
    long seconds, nanoseconds;
  } time = {0, brief_ns};
  syscall(SYS_nanosleep, &time, NULL);
}

int end_of(double pid, double milliseconds) {
  int status = 0;
  for (; milliseconds > 0; milliseconds--) {
    long ended = syscall(SYS_wait4, (long)pid, &status, no_hang, NULL);
    if (ended < 0) return -kill_signal;
    if (ended > 0) return (status & 0x7f) ? -(status & 0x7f) : status >> 8 & 0xff;
    pause_briefly();
  }
  syscall(SYS_kill, (long)pid, kill_signal);
  syscall(SYS_wait4, (long)pid, &status, 0, NULL);
  return -kill_signal;
}

void end_process(int status) {
  if (status == 0 && is_child) syscall(SYS_kill, 1, done);
  syscall(SYS_exit_group, status);
}
