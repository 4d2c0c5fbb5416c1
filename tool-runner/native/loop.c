/* See loop.h. Of libuv and OpenSSL it uses what Node exports. */
#include "loop.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>

typedef struct uv_handle uv_handle;
typedef void (*on_handle)(uv_handle *handle);

int uv_loop_fork(struct uv_loop *loop);
int uv_loop_alive(const struct uv_loop *loop);
size_t uv_handle_size(int type);
int uv_prepare_init(struct uv_loop *loop, uv_handle *handle);
int uv_prepare_start(uv_handle *handle, on_handle callback);
int uv_idle_init(struct uv_loop *loop, uv_handle *handle);
int uv_idle_start(uv_handle *handle, on_handle callback);
int uv_idle_stop(uv_handle *handle);
void uv_ref(uv_handle *handle);
void uv_unref(uv_handle *handle);
void RAND_add(const void *bytes, int count, double entropy);

enum {
  /* uv_handle_type. */
  idle_type = 6,
  prepare_type = 9,
  handle_bytes = 512,
  seed_bytes = 48,
  do_fork = 11,
  name_bytes = 64,
  stat_bytes = 512,
};

static _Alignas(16) char prepare_memory[handle_bytes], idle_memory[handle_bytes];
static uv_handle *const prepare = (uv_handle *)prepare_memory;
static uv_handle *const idle = (uv_handle *)idle_memory;
static struct uv_loop *own_loop;
static void (*tell_rest)(void);
static int was_at_rest;

static void copy_at_fork(unsigned long start, unsigned long end, void *data) {
  (void)data;
  /* The kernel's own pages, such as [vvar], refuse it and need none. */
  syscall(SYS_madvise, start, end - start, do_fork);
}

int let_memory_be_copied(void) { return each_anonymous_mapping(copy_at_fork, NULL); }

/* Of /proc/self/task/ID/stat: `ID (name) state …`. The name may have any characters. */
static void check_sleeps(int id, void *all_sleep) {
  if (id == syscall(SYS_gettid)) return;
  char path[name_bytes], *limit = path + sizeof path, line[stat_bytes];
  char *end = append_number(append(path, limit, "/proc/self/task/"), limit, id);
  append(end, limit, "/stat");
  long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  long length = syscall(SYS_read, file, line, sizeof line - 1);
  syscall(SYS_close, file);
  while (length > 0 && line[length - 1] != ')') length--;
  if (length <= 0 || line[length + 1] != 'S') *(int *)all_sleep = 0;
}

int others_sleep(void) {
  int all_sleep = 1;
  each_number("/proc/self/task", check_sleeps, &all_sleep);
  return all_sleep;
}

/* Threads that are not there any more have waited at these; siblings would share them. */
static void replace_shared(int descriptor, void *is_done) {
  char path[name_bytes], *limit = path + sizeof path, target[name_bytes];
  append_number(append(path, limit, "/proc/self/fd/"), limit, descriptor);
  long length = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof target - 1);
  if (length < 0) return;
  target[length] = 0;
  long fresh;
  if (strcmp(target, "anon_inode:[eventfd]") == 0)
    fresh = syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  else if (strcmp(target, "anon_inode:[eventpoll]") == 0)
    fresh = syscall(SYS_epoll_create1, O_CLOEXEC);
  else
    return;
  if (fresh < 0 || syscall(SYS_dup3, fresh, descriptor, O_CLOEXEC) < 0) *(int *)is_done = 0;
  if (fresh >= 0) syscall(SYS_close, fresh);
}

int renew(struct uv_loop *loop) {
  int is_done = 1;
  each_number("/proc/self/fd", replace_shared, &is_done);
  if (!is_done || uv_loop_fork(loop) != 0) return 0;
  char seed[seed_bytes];
  if (syscall(SYS_getrandom, seed, sizeof seed, 0) != sizeof seed) return 0;
  /* OpenSSL compares process ids, too. */
  RAND_add(seed, sizeof seed, sizeof seed);
  return 1;
}

int is_kept_alive(void) {
  uv_unref(prepare);
  int is_alive = uv_loop_alive(own_loop);
  uv_ref(prepare);
  return is_alive;
}

static void do_nothing(uv_handle *handle) { (void)handle; }

static void on_prepare(uv_handle *handle) {
  (void)handle;
  int is_at_rest = !is_kept_alive();
  if (is_at_rest && was_at_rest) tell_rest();
  /* V8's tasks keep nothing alive: a round without waiting runs those that are there. */
  if (is_at_rest && !was_at_rest) uv_idle_start(idle, do_nothing);
  else uv_idle_stop(idle);
  was_at_rest = is_at_rest && !was_at_rest;
}

int watch_rest(struct uv_loop *loop, void (*on_rest)(void)) {
  if (uv_handle_size(prepare_type) > handle_bytes || uv_handle_size(idle_type) > handle_bytes)
    return 0;
  own_loop = loop;
  tell_rest = on_rest;
  if (uv_prepare_init(loop, prepare) != 0 || uv_idle_init(loop, idle) != 0) return 0;
  uv_unref(idle);
  return uv_prepare_start(prepare, on_prepare) == 0;
}
