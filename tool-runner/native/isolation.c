/* See isolation.h. */
#include "isolation.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <string.h>

static const char work_directory[] = "/sandbox/work";
static const char template_directory[] = "/sandbox/template";
static const char last_pid[] = "/proc/sys/kernel/ns_last_pid";

/* Flags of mount(2), and signals and families that only libraries have names for. */
enum {
  read_only = 1,
  no_suid = 2,
  no_devices = 4,
  no_programs = 8,
  bound = 0x1000,
  recursive = 0x4000,
  private_ = 0x40000,
  child_ended = 17,
  internet = 2,
  datagrams = 2,
  max_capabilities = 64,
  cpu_bits = 8 * sizeof(unsigned long),
};

static int copied(char text[max_text], const char *source) {
  return append(text, text + max_text, source) < text + max_text - 1;
}

int add_mount(struct settings *settings, const char *path, const char *options) {
  if (settings->mount_count == max_mounts) return 0;
  unsigned index = settings->mount_count++;
  return copied(settings->mounts[index].path, path) &&
         copied(settings->mounts[index].options, options);
}

int add_limit(struct settings *settings, struct limit limit) {
  if (settings->limit_count == max_limits) return 0;
  settings->limits[settings->limit_count++] = limit;
  return 1;
}

int set_filter(struct settings *settings, const void *filter, size_t bytes) {
  if (bytes == 0 || bytes > sizeof settings->filter || bytes % instruction_bytes != 0) return 0;
  memcpy(settings->filter, filter, bytes);
  settings->filter_length = (unsigned short)(bytes / instruction_bytes);
  return 1;
}

void add_cpu(struct order *order, unsigned cpu) {
  if (cpu >= max_cpus) return;
  order->has_cpus = 1;
  order->cpus[cpu / cpu_bits] |= 1UL << (cpu % cpu_bits);
}

int can_isolate(const struct settings *settings, struct failure *failure) {
  long file = syscall(SYS_openat, AT_FDCWD, last_pid, O_WRONLY | O_CLOEXEC, 0);
  if (file < 0) return fail(failure, "choose process ids");
  syscall(SYS_close, file);
  for (unsigned index = 0; index < settings->limit_count; index++) {
    unsigned resource = settings->limits[index].resource;
    unsigned long long bounds[2];
    if (syscall(SYS_prlimit64, 0, resource, NULL, bounds) < 0) return fail(failure, "limits");
    bounds[0] = bounds[1];
    if (syscall(SYS_prlimit64, 0, resource, bounds, NULL) < 0) return fail(failure, "limits");
  }
  return 1;
}

long clone_first(const struct settings *settings) {
  unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  if (!settings->has_network) flags |= CLONE_NEWNET;
  return syscall(SYS_clone, flags | child_ended, 0, 0, 0, 0);
}

static int write_map(const char *path, long id) {
  char text[max_text], *limit = text + sizeof text;
  char *end = append(append_number(text, limit, id), limit, " ");
  append(append_number(end, limit, id), limit, " 1");
  return write_file(path, text);
}

int enter_user(struct failure *failure) {
  long user = syscall(SYS_geteuid), group = syscall(SYS_getegid);
  int entered = write_file("/proc/self/setgroups", "deny") &&
                write_map("/proc/self/uid_map", user) && write_map("/proc/self/gid_map", group) &&
                write_file("/proc/sys/user/max_user_namespaces", "0");
  return entered || fail(failure, "user namespace");
}

int set_next_pid(long pid, struct failure *failure) {
  char text[max_text];
  append_number(text, text + sizeof text, pid - 1);
  return write_file(last_pid, text) || fail(failure, "process id");
}

static int mounted(const char *source, const char *target, const char *kind, unsigned long flags,
                   const char *options, struct failure *failure) {
  return syscall(SYS_mount, source, target, kind, flags, options) == 0 || fail(failure, target);
}

static int raise_loopback(struct failure *failure) {
  struct ifreq request;
  memset(&request, 0, sizeof request);
  memcpy(request.ifr_name, "lo", sizeof "lo");
  long probe = syscall(SYS_socket, internet, datagrams, 0);
  if (probe < 0) return fail(failure, "loopback");
  int raised = syscall(SYS_ioctl, probe, SIOCGIFFLAGS, &request) == 0;
  request.ifr_flags |= IFF_UP;
  raised = raised && syscall(SYS_ioctl, probe, SIOCSIFFLAGS, &request) == 0;
  syscall(SYS_close, probe);
  return raised || fail(failure, "loopback");
}

int mount_own(const struct settings *settings, const char *directory, struct failure *failure) {
  char own[2 * max_text], *limit = own + sizeof own;
  append(append(append(own, limit, template_directory), limit, "/"), limit, directory);
  if (!mounted(NULL, "/", NULL, recursive | private_, NULL, failure)) return 0;
  if (!mounted(own, work_directory, NULL, bound, NULL, failure)) return 0;
  for (unsigned index = 0; index < settings->mount_count; index++) {
    const char *path = settings->mounts[index].path, *options = settings->mounts[index].options;
    if (!mounted("tmpfs", path, "tmpfs", no_suid | no_devices, options, failure)) return 0;
  }
  if (settings->has_terminals && !mounted("devpts", "/dev/pts", "devpts", no_suid | no_programs,
                                          "ptmxmode=0666,mode=620", failure))
    return 0;
  unsigned long nothing = no_suid | no_devices | no_programs | read_only;
  if (!mounted("proc", "/proc", "proc", nothing, NULL, failure)) return 0;
  if (!mounted("tmpfs", template_directory, "tmpfs", nothing, "mode=0755,size=4096,nr_inodes=1",
               failure))
    return 0;
  if (syscall(SYS_chdir, work_directory) < 0) return fail(failure, work_directory);
  return settings->has_network || raise_loopback(failure);
}

int drop_privileges(const struct settings *settings, const struct order *order,
                    struct failure *failure) {
  if (syscall(SYS_unshare, CLONE_NEWCGROUP) < 0) return fail(failure, "control group namespace");
  if (order->has_cpus &&
      syscall(SYS_sched_setaffinity, 0, sizeof order->cpus, order->cpus) < 0)
    return fail(failure, "processors");
  for (long capability = 0; capability < max_capabilities; capability++) {
    /* There are no more of them. */
    if (syscall(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) break;
  }
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
  memset(none, 0, sizeof none);
  if (syscall(SYS_capset, &header, none) < 0) return fail(failure, "capabilities");
  if (syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
    return fail(failure, "ambient capabilities");
  if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    return fail(failure, "new privileges");
  struct sock_fprog program = {settings->filter_length, (struct sock_filter *)settings->filter};
  if (syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
    return fail(failure, "system-call filter");
  return 1;
}

int limit_process(const struct settings *settings, struct failure *failure) {
  for (unsigned index = 0; index < settings->limit_count; index++) {
    const struct limit *limit = &settings->limits[index];
    unsigned long long bounds[2] = {limit->soft, limit->hard};
    if (syscall(SYS_prlimit64, 0, limit->resource, bounds, NULL) < 0)
      return fail(failure, "limits");
  }
  return 1;
}
