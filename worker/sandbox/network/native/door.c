/* Sockets inside the network namespace of a sandbox, for door.py; inside.py has the same in Python.
 * Here a process makes them that shares the door's memory and descriptors: it costs far less than a
 * fork. Linked without a C library, so that one build serves glibc and musl: it names only functions that
 * both have, by the same interface. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { max_sockets = 128, max_helpers = 5, max_answer = 4096, stack_bytes = 64 * 1024 };

/* As `Request` of door.py. */
struct request {
  unsigned long long namespace;
  const char *path;
  /* Of servers, of datagrams, and to connect to, in this order. */
  const struct sockaddr_in *places;
  int servers, datagrams, connections;
  int raises_loopback, backlog, wait_seconds, connect_ms;
  /* The result: of a failed step errno or 0, else the sockets in the order of their places. */
  int error;
  int sockets[max_sockets];
};

/* What the process of a request shares with the door, which closes what it opened. */
struct job {
  struct request *request;
  pid_t door;
  const char *failed;
  int socket_count, helper_count;
  int helpers[max_helpers];
};

static int fail(struct job *job, const char *step) {
  job->failed = step;
  job->request->error = errno;
  return 0;
}

static int helper(struct job *job, int descriptor) {
  if (descriptor >= 0) job->helpers[job->helper_count++] = descriptor;
  return descriptor;
}

/* By way of the user namespace that owns it: the sandbox itself may be in one further down. */
static int enter(struct job *job) {
  struct stat status;
  int network = helper(job, open(job->request->path, O_RDONLY | O_CLOEXEC));
  if (network < 0 || syscall(SYS_fstat, network, &status) < 0) return fail(job, job->request->path);
  errno = 0;
  if (status.st_ino != job->request->namespace) return fail(job, "the sandbox has ended");
  int owner = helper(job, ioctl(network, NS_GET_USERNS));
  if (owner < 0) return fail(job, "owner of the network");
  if (setns(owner, CLONE_NEWUSER) < 0) return fail(job, "setns to the owner");
  if (setns(network, CLONE_NEWNET) < 0) return fail(job, "setns to the network");
  /* Only now: setns(2) may reset it. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return fail(job, "prctl");
  return getppid() == job->door;
}

static int open_netlink(struct job *job, unsigned groups) {
  const struct timeval wait = {job->request->wait_seconds, 0};
  const struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = groups};
  int made = helper(job, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (made < 0 || setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
      bind(made, (const struct sockaddr *)&own, sizeof own) < 0)
    return -1;
  return made;
}

static int receive(int netlink, void *answer, size_t bytes) {
  if (recv(netlink, answer, bytes, 0) >= 0) return 1;
  if (errno == EAGAIN) errno = ETIMEDOUT;
  return 0;
}

/* bubblewrap gives the interface its address and fails where it has one, so it comes first. A
 * template's child does it later only: then the door does. */
static int prepare_loopback(struct job *job, int probe) {
  struct ifreq loopback = {.ifr_name = "lo"};
  char change[max_answer];
  int changes = -1;
  if (!job->request->raises_loopback && (changes = open_netlink(job, RTMGRP_LINK)) < 0)
    return fail(job, "changes of lo");
  for (;;) {
    if (ioctl(probe, SIOCGIFFLAGS, &loopback) < 0) return fail(job, "state of lo");
    if (loopback.ifr_flags & IFF_UP) return 1;
    if (job->request->raises_loopback) break;
    if (!receive(changes, change, sizeof change)) return fail(job, "lo is down");
  }
  loopback.ifr_flags |= IFF_UP;
  return ioctl(probe, SIOCSIFFLAGS, &loopback) < 0 ? fail(job, "raise lo") : 1;
}

/* `ip route add local 0.0.0.0/0 dev lo`: connections to literal addresses reach the same listeners,
 * which see the address. */
static int lead_everything_here(struct job *job, int probe) {
  struct ifreq loopback = {.ifr_name = "lo"};
  struct {
    struct nlmsghdr header;
    struct rtmsg route;
    struct rtattr attribute;
    int interface;
  } message = {
      {sizeof message, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0},
      {.rtm_family = AF_INET,
       .rtm_table = RT_TABLE_LOCAL,
       .rtm_protocol = RTPROT_BOOT,
       .rtm_scope = RT_SCOPE_HOST,
       .rtm_type = RTN_LOCAL},
      {sizeof message.attribute + sizeof message.interface, RTA_OIF},
      0,
  };
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
    char rest[max_answer];
  } answer;
  int netlink = open_netlink(job, 0);
  if (netlink < 0 || ioctl(probe, SIOCGIFINDEX, &loopback) < 0) return fail(job, "route");
  message.interface = loopback.ifr_ifindex;
  if (send(netlink, &message, sizeof message, 0) < 0 || !receive(netlink, &answer, sizeof answer))
    return fail(job, "route");
  errno = -answer.error.error;
  return errno != 0 ? fail(job, "route") : 1;
}

static int make(struct job *job, int type) {
  int made = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made >= 0) job->request->sockets[job->socket_count++] = made;
  return made;
}

static int make_bound(struct job *job, int type, const struct sockaddr_in *place) {
  int made = make(job, type);
  if (made < 0) return fail(job, "socket");
  if (bind(made, (const struct sockaddr *)place, sizeof *place) < 0) return fail(job, "bind");
  if (type == SOCK_STREAM && listen(made, job->request->backlog) < 0) return fail(job, "listen");
  return 1;
}

static int make_connected(struct job *job, const struct sockaddr_in *place) {
  const int on = 1;
  int made = make(job, SOCK_STREAM);
  if (made < 0) return fail(job, "socket");
  if (connect(made, (const struct sockaddr *)place, sizeof *place) < 0) {
    if (errno != EINPROGRESS) return fail(job, "connect");
    struct pollfd writable = {made, POLLOUT, 0};
    int error = ETIMEDOUT;
    socklen_t bytes = sizeof error;
    if (poll(&writable, 1, job->request->connect_ms) > 0)
      getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &bytes);
    errno = error;
    if (error != 0) return fail(job, "connect");
  }
  setsockopt(made, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
  return 1;
}

static int make_all(struct job *job) {
  const struct request *request = job->request;
  const struct sockaddr_in *place = request->places;
  if (request->connections == 0) {
    int probe = helper(job, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (probe < 0) return fail(job, "socket");
    if (!prepare_loopback(job, probe) || !lead_everything_here(job, probe)) return 0;
  }
  for (int index = 0; index < request->servers; index++)
    if (!make_bound(job, SOCK_STREAM, place++)) return 0;
  for (int index = 0; index < request->datagrams; index++)
    if (!make_bound(job, SOCK_DGRAM, place++)) return 0;
  for (int index = 0; index < request->connections; index++)
    if (!make_connected(job, place++)) return 0;
  return 1;
}

static int serve(void *argument) {
  struct job *job = argument;
  if (enter(job) && make_all(job)) job->failed = NULL;
  return 0;
}

/* Makes the sockets of a request, all or none, which the caller owns. The failed step, or NULL. The
 * door waits meanwhile, and each wait of the process that works is bounded. */
__attribute__((visibility("default"))) const char *open_sockets(struct request *request) {
  static _Alignas(16) char stack[stack_bytes];
  struct job job = {.request = request, .door = getpid()};
  /* A handler of the door's would run in its memory. */
  sigset_t everything, mask;
  sigfillset(&everything);
  sigprocmask(SIG_SETMASK, &everything, &mask);
  job.failed = "the process that enters sandboxes has ended";
  /* setns(2) to a user namespace wants a process of one thread that shares no directory. */
  const int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD;
  int pid = clone(serve, stack + sizeof stack, flags, &job);
  if (pid < 0) fail(&job, "clone");
  else waitpid(pid, NULL, 0);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  while (job.helper_count > 0) close(job.helpers[--job.helper_count]);
  while (job.failed != NULL && job.socket_count > 0) close(request->sockets[--job.socket_count]);
  return job.failed;
}
