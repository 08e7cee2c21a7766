/* Every way to have the kernel send a signal to a process by its number: `summon PID`. The last one is meant to end it. */
#include "report.h"
#include <fcntl.h>
#include <sys/prctl.h>

#include <sys/socket.h>

static pid_t victim;

static long by_queue(void) {
  union sigval nothing = {0};
  return sigqueue(victim, 0, nothing);
}

static long own(int who) {
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ? -1 : fcntl(ends[0], F_SETOWN, who);
}

static long own_as(int type) {
  struct f_owner_ex owner = {.type = type, .pid = victim};
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ? -1 : fcntl(ends[0], F_SETOWN_EX, &owner);
}

/* Who owns a socket gets SIGIO when something arrives at it, and ends by it. */
static long by_arrival(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || fcntl(ends[0], F_SETFL, O_ASYNC)) return -1;
  if (fcntl(ends[0], F_SETOWN, victim)) return -1;
  return write(ends[1], "x", 1);
}

/* The signal of a parent's death goes to the one who asked for it, and to nobody else. */
static long by_death(void) {
  int asked[2];
  char byte;
  pid_t parent = pipe(asked) ? -1 : fork();
  if (parent == 0) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(write(asked[1], "x", 1) == 1 && pause());
    }
    _exit(read(asked[0], &byte, 1) != 1);
  }
  return waitpid(parent, 0, 0) == parent ? 0 : -1;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  victim = atoi(argv[1]);
  ATTEMPT("kill", kill(victim, 0));
  ATTEMPT("thread-kill", syscall(SYS_tgkill, victim, victim, 0));
  ATTEMPT("queue", by_queue());
  ATTEMPT("descriptor", syscall(SYS_pidfd_open, victim, 0));
  ATTEMPT("owner", own(victim));
  ATTEMPT("owner-ex", own_as(F_OWNER_PID));
  ATTEMPT("owner-thread", own_as(F_OWNER_TID));
  ATTEMPT("parent-death", by_death());
  ATTEMPT("arrival", by_arrival());
  return 0;
}
