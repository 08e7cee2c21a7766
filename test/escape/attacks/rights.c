/* S11: calls that every program may make, asked for more than an agent has. Changes nothing that outlives a process. */
#include "report.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static long realtime(int policy) {
  struct sched_param parameter = {.sched_priority = 1};
  return sched_setscheduler(0, policy, &parameter);
}

static long deadline(void) {
  struct {
    unsigned size, policy;
    unsigned long long flags;
    int nice;
    unsigned priority;
    unsigned long long runtime, deadline, period;
  } attributes = {sizeof attributes, 6, 0, 0, 0, 1000000, 100000000, 100000000};
  return syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static long option(int level, int name) {
  int one = 1;
  return setsockopt(socket(AF_INET, SOCK_DGRAM, 0), level, name, &one, sizeof one);
}

static long device(void) {
  char name[] = "lo";
  int bound = socket(AF_INET, SOCK_DGRAM, 0);
  if (setsockopt(bound, SOL_SOCKET, SO_BINDTODEVICE, name, sizeof name) < 0) return -1;
  /* Anybody may choose a device once; only CAP_NET_RAW may leave it. */
  return setsockopt(bound, SOL_SOCKET, SO_BINDTODEVICE, "", 0);
}

static long give_away(void) {
  char name[] = "given-XXXXXX";
  int file = mkstemp(name);
  unlink(name);
  return fchown(file, 12345, 12345);
}

static long linked(const char *name) {
  long result = link(name, "linked-program");
  if (result == 0) unlink("linked-program");
  return result;
}

int main(int argc, char **argv) {
  ATTEMPT("unlock-securebits", prctl(PR_SET_SECUREBITS, 0));
  ATTEMPT("drop-from-bounding", prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE));
  ATTEMPT("priority", setpriority(PRIO_PROCESS, 0, -5));
  ATTEMPT("realtime", realtime(SCHED_FIFO));
  ATTEMPT("round-robin", realtime(SCHED_RR));
  ATTEMPT("deadline", deadline());
  ATTEMPT("io-realtime", syscall(SYS_ioprio_set, 1, 0, (1 << 13) | 0));
  ATTEMPT("mark-packets", option(SOL_SOCKET, SO_MARK));
  ATTEMPT("transparent-proxy", option(IPPROTO_IP, IP_TRANSPARENT));
  ATTEMPT("force-buffer", option(SOL_SOCKET, SO_SNDBUFFORCE));
  ATTEMPT("leave-device", device());
  ATTEMPT("give-away", give_away());
  ATTEMPT("netlink-audit", socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT));
  ATTEMPT("netlink-uevent", socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT));
  ATTEMPT("netlink-generic", socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC));
  ATTEMPT("netlink-sockets", socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG));
  /* Without valid content: outside it is looked at, and so refused for another reason. */
  ATTEMPT("trim", ioctl(open(".", O_RDONLY), FITRIM, 0));
  if (argc > 1) ATTEMPT("link-to-setuid", linked(argv[1]));
  if (argc > 2) ATTEMPT("link-to-system", linked(argv[2]));
  return 0;
}
