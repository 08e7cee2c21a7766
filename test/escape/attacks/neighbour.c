/* A command against another of its user in the same branch, and against what holds both: `neighbour VICTIM INIT`. */
#include "report.h"
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static long victim, holder;

static long open_of(long pid, const char *file, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/%s", pid, file);
  return open(path, flags);
}

static long read_memory(void) {
  char here[8];
  struct iovec local = {here, sizeof here}, remote = {&victim, sizeof here};
  long result = syscall(SYS_process_vm_readv, victim, &local, 1, &remote, 1, 0);
  /* The address is ours: EFAULT says that the kernel looked. */
  return result < 0 && errno == EFAULT ? 0 : result;
}

static long take_descriptor(void) {
  long process = syscall(SYS_pidfd_open, victim, 0);
  return process < 0 ? process : syscall(SYS_pidfd_getfd, process, 0, 0);
}

static long send_by_descriptor(void) {
  long process = syscall(SYS_pidfd_open, victim, 0);
  return process < 0 ? process : syscall(SYS_pidfd_send_signal, process, 0, 0, 0);
}

static long be_spared(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY);
  return fd < 0 ? fd : write(fd, "-900", 4);
}


int main(int argc, char **argv) {
  gid_t group = 4;
  if (argc < 3) return 2;
  victim = atol(argv[1]);
  holder = atol(argv[2]);
  ATTEMPT("trace", ptrace(PTRACE_SEIZE, victim, 0, 0));
  ATTEMPT("read-memory", read_memory());
  ATTEMPT("open-memory", open_of(victim, "mem", O_RDWR));
  ATTEMPT("open-environment", open_of(victim, "environ", O_RDONLY));
  ATTEMPT("open-descriptor", open_of(victim, "fd/0", O_RDONLY | O_NONBLOCK));
  ATTEMPT("take-descriptor", take_descriptor());
  ATTEMPT("signal", kill((pid_t)victim, 0));
  ATTEMPT("signal-by-descriptor", send_by_descriptor());
  ATTEMPT("init-memory", open_of(holder, "mem", O_RDWR));
  ATTEMPT("init-descriptors", open_of(holder, "fd", O_RDONLY));
  ATTEMPT("init-signal", kill((pid_t)holder, 0));
  ATTEMPT("spared-by-oom", be_spared());
  ATTEMPT("join-group", setgroups(1, &group));
  ATTEMPT("priority", setpriority(PRIO_PROCESS, 0, -5));
  ATTEMPT("time-namespace", unshare(CLONE_NEWTIME));
  return 0;
}
