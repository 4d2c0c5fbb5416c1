/* Children of a template of Node's, for `template.js`: each waits for one call, isolated from all
 * others. tool-runner/PROTOCOL.md, "Templates", has the rules. */
#include "child.h"
#include "isolation.h"
#include "loop.h"
#include "system.h"

#include <fcntl.h>
#include <stdbool.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_ref__ *napi_ref;
typedef struct napi_scope__ *napi_scope;
typedef struct napi_info__ *napi_info;
typedef napi_value (*napi_function)(napi_env env, napi_info info);

int napi_create_function(napi_env, const char *, size_t, napi_function, void *, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
int napi_get_named_property(napi_env, napi_value, const char *, napi_value *);
int napi_get_element(napi_env, napi_value, unsigned, napi_value *);
int napi_get_array_length(napi_env, napi_value, unsigned *);
int napi_get_cb_info(napi_env, napi_info, size_t *, napi_value *, napi_value *, void **);
int napi_get_value_bool(napi_env, napi_value, bool *);
int napi_get_value_double(napi_env, napi_value, double *);
int napi_get_value_string_utf8(napi_env, napi_value, char *, size_t, size_t *);
int napi_get_buffer_info(napi_env, napi_value, void **, size_t *);
int napi_get_global(napi_env, napi_value *);
int napi_create_double(napi_env, double, napi_value *);
int napi_create_reference(napi_env, napi_value, unsigned, napi_ref *);
int napi_get_reference_value(napi_env, napi_ref, napi_value *);
int napi_open_handle_scope(napi_env, napi_scope *);
int napi_close_handle_scope(napi_env, napi_scope);
int napi_make_callback(napi_env, void *, napi_value, napi_value, size_t, const napi_value *,
                       napi_value *);
int napi_throw_error(napi_env, const char *, const char *);
int napi_get_uv_event_loop(napi_env, struct uv_loop **);

enum {
  max_arguments = 2,
  /* The worker's end of the runner's wake channel, as every parked runner has it. */
  wake_descriptor = 3,
  /* Looks at threads that run before the template gives up, each after a millisecond. */
  max_looks = 200,
};

static struct settings settings;
static napi_env own_env;
/* What a process does at rest, in turn. */
static napi_ref before_exit, at_exit;

static napi_value number(napi_env env, double value) {
  napi_value made = NULL;
  napi_create_double(env, value, &made);
  return made;
}

/* Throws what failed. */
static napi_value thrown(napi_env env, const struct failure *failure) {
  char text[max_text], *limit = text + sizeof text;
  char *end = append(append(text, limit, failure->step), limit, ": errno ");
  append_number(end, limit, failure->error);
  napi_throw_error(env, NULL, text);
  return NULL;
}

static napi_value member(napi_env env, napi_value object, const char *name) {
  napi_value value = NULL;
  napi_get_named_property(env, object, name, &value);
  return value;
}

static napi_value element(napi_env env, napi_value array, unsigned index) {
  napi_value value = NULL;
  napi_get_element(env, array, index, &value);
  return value;
}

static unsigned length_of(napi_env env, napi_value array) {
  unsigned length = 0;
  napi_get_array_length(env, array, &length);
  return length;
}

static bool flag_of(napi_env env, napi_value value) {
  bool flag = false;
  napi_get_value_bool(env, value, &flag);
  return flag;
}

static double number_of(napi_env env, napi_value value) {
  double found = 0;
  napi_get_value_double(env, value, &found);
  return found;
}

static void read_text(napi_env env, napi_value value, char text[max_text]) {
  *text = 0;
  napi_get_value_string_utf8(env, value, text, max_text, NULL);
}

/* A bound of a resource; negative numbers stand for none. */
static unsigned long long bound_of(napi_env env, napi_value value) {
  double bound = number_of(env, value);
  return bound < 0 ? ~0ULL : (unsigned long long)bound;
}

/* prepare({network, terminals, gateway, mounts: [[path, options]], limits: [[resource, soft,
 * hard]], filter: Buffer}): from now on this process can make children. The descriptor of their
 * gateway's channel. Throws. */
static napi_value prepare(napi_env env, napi_info info) {
  napi_value given = NULL;
  size_t count = 1;
  napi_get_cb_info(env, info, &count, &given, NULL, NULL);
  settings.has_network = flag_of(env, member(env, given, "network"));
  settings.has_terminals = flag_of(env, member(env, given, "terminals"));
  settings.has_gateway = flag_of(env, member(env, given, "gateway"));
  settings.wake = wake_descriptor;
  napi_value mounts = member(env, given, "mounts"), limits = member(env, given, "limits");
  struct failure failure = {"mounts, limits or filter", EINVAL};
  for (unsigned index = 0; index < length_of(env, mounts); index++) {
    napi_value mount = element(env, mounts, index);
    char path[max_text], options[max_text];
    read_text(env, element(env, mount, 0), path);
    read_text(env, element(env, mount, 1), options);
    if (!add_mount(&settings, path, options)) return thrown(env, &failure);
  }
  for (unsigned index = 0; index < length_of(env, limits); index++) {
    napi_value given_limit = element(env, limits, index);
    struct limit limit = {(unsigned)number_of(env, element(env, given_limit, 0)),
                          bound_of(env, element(env, given_limit, 1)),
                          bound_of(env, element(env, given_limit, 2))};
    if (!add_limit(&settings, limit)) return thrown(env, &failure);
  }
  void *filter = NULL;
  size_t bytes = 0;
  napi_get_buffer_info(env, member(env, given, "filter"), &filter, &bytes);
  if (!set_filter(&settings, filter, bytes)) return thrown(env, &failure);
  if (!can_isolate(&settings, &failure)) return thrown(env, &failure);
  return number(env, prepare_parent(&settings));
}

static void call(napi_ref reference) {
  napi_scope scope;
  napi_value global, callback, result;
  napi_open_handle_scope(own_env, &scope);
  napi_get_global(own_env, &global);
  napi_get_reference_value(own_env, reference, &callback);
  napi_make_callback(own_env, NULL, global, callback, 0, NULL, &result);
  napi_close_handle_scope(own_env, scope);
}

static void end_at_rest(void) {
  call(before_exit);
  if (!is_kept_alive()) call(at_exit);
}

/* Makes a forked process one that can go on as Node. */
static int go_on(napi_env env) {
  struct uv_loop *loop;
  return napi_get_uv_event_loop(env, &loop) == 0 && renew(loop) && watch_rest(loop, end_at_rest);
}

/* Whether this process can be copied now. */
static int is_copyable(struct failure *failure) {
  for (int look = 0; !others_sleep(); look++)
    if (look == max_looks) return fail(failure, "threads run");
    else pause_briefly();
  return let_memory_be_copied() || fail(failure, "memory");
}

/* child({word, directory, pid, cpus}): makes a child. The id of its first process in this
 * namespace, or 0 in the child's runner. Throws. */
static napi_value order_child(napi_env env, napi_info info) {
  napi_value given = NULL;
  size_t count = 1;
  char word[max_text], directory[max_text];
  struct order order = {.word = word, .directory = directory};
  struct failure failure;
  napi_get_cb_info(env, info, &count, &given, NULL, NULL);
  read_text(env, member(env, given, "word"), word);
  read_text(env, member(env, given, "directory"), directory);
  order.pid = (long)number_of(env, member(env, given, "pid"));
  napi_value cpus = member(env, given, "cpus");
  for (unsigned index = 0; index < length_of(env, cpus); index++)
    add_cpu(&order, (unsigned)number_of(env, element(env, cpus, index)));
  if (!is_copyable(&failure)) return thrown(env, &failure);
  long first = make_child(&settings, &order);
  if (first < 0) {
    fail(&failure, "clone");
    return thrown(env, &failure);
  }
  if (first == 0 && !go_on(env)) end_process(1);
  return number(env, (double)first);
}

/* fork(): forks this process as it is. The id of the other one, 0 in it. Throws. */
static napi_value fork_process(napi_env env, napi_info info) {
  (void)info;
  struct failure failure;
  if (!is_copyable(&failure)) return thrown(env, &failure);
  long forked = fork();
  if (forked < 0) {
    fail(&failure, "fork");
    return thrown(env, &failure);
  }
  if (forked == 0 && !go_on(env)) end_process(1);
  return number(env, (double)forked);
}

/* silence(): this process has nothing of the template's to write to. */
static napi_value silence(napi_env env, napi_info info) {
  (void)env, (void)info;
  for (long descriptor = 1; descriptor <= wake_descriptor; descriptor++)
    syscall(SYS_dup3, 0, descriptor, 0);
  return NULL;
}

/* await(pid, milliseconds): its exit status, or the signal that ended it, negative. */
static napi_value await_process(napi_env env, napi_info info) {
  napi_value given[max_arguments];
  size_t count = max_arguments;
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  return number(env, end_of(number_of(env, given[0]), number_of(env, given[1])));
}

/* onRest(beforeExit, exit): what a forked process calls when nothing keeps its event loop alive; the
 * second if that is still so after the first. */
static napi_value set_on_rest(napi_env env, napi_info info) {
  napi_value given[max_arguments];
  size_t count = max_arguments;
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  own_env = env;
  napi_create_reference(env, given[0], 1, &before_exit);
  napi_create_reference(env, given[1], 1, &at_exit);
  return NULL;
}

/* giveWay(): this thread does not interrupt others from now on. */
static napi_value yield_to_others(napi_env env, napi_info info) {
  (void)env, (void)info;
  give_way();
  return NULL;
}

/* exit(status): ends this process immediately, and with 0 the child as a whole. */
static napi_value leave(napi_env env, napi_info info) {
  napi_value status = NULL;
  size_t count = 1;
  napi_get_cb_info(env, info, &count, &status, NULL, NULL);
  end_process((int)number_of(env, status));
  return NULL;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
                                                                           napi_value exports) {
  static const struct {
    const char *name;
    napi_function function;
  } functions[] = {
      {"prepare", prepare}, {"child", order_child},      {"fork", fork_process},
      {"silence", silence}, {"await", await_process},  {"onRest", set_on_rest},
      {"giveWay", yield_to_others}, {"exit", leave},
  };
  for (size_t index = 0; index < sizeof functions / sizeof *functions; index++) {
    napi_value function;
    napi_create_function(env, NULL, 0, functions[index].function, NULL, &function);
    napi_set_named_property(env, exports, functions[index].name, function);
  }
  return exports;
}
