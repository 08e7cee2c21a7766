/* One act per run, for the layer test: layer write|read|tcp|abstract|kill|trace|mount|userns|device|packet ARG. */
#include "report.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>

static long tcp(const char *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address);
}

static long local(const char *name, int abstract) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path + abstract, name, sizeof address.sun_path - 2);
  socklen_t size = offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1;
  return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, size);
}

static long read_memory(pid_t pid) {
  char byte;
  struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
  if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0) return ptrace(PTRACE_DETACH, pid, 0, 0), 0;
  return process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT ? -1 : 0;
}

static long user_namespace_mount(const char *on) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return -1;
  return mount("none", on, "tmpfs", 0, 0);
}

int main(int argc, char **argv) {
  if (argc < 3) return 1;
  const char *how = argv[1], *what = argv[2];
  errno = 0;
  if (!strcmp(how, "write")) report(how, open(what, O_WRONLY | O_APPEND));
  if (!strcmp(how, "read")) report(how, open(what, O_RDONLY));
  if (!strcmp(how, "execute")) report(how, execl(what, what, "-c", "echo execute OK", (char *)0));
  if (!strcmp(how, "tcp")) report(how, tcp(what));
  if (!strcmp(how, "abstract")) report(how, local(what, 1));
  if (!strcmp(how, "socket")) report(how, local(what, 0));
  if (!strcmp(how, "kill")) report(how, kill(atoi(what), SIGURG));
  if (!strcmp(how, "trace")) report(how, read_memory(atoi(what)));
  if (!strcmp(how, "mount")) report(how, mount("none", what, "tmpfs", 0, 0));
  if (!strcmp(how, "userns")) report(how, user_namespace_mount(what));
  if (!strcmp(how, "device")) report(how, mknod(what, S_IFCHR | 0666, makedev(1, 5)));
  if (!strcmp(how, "packet")) report(how, socket(AF_PACKET, SOCK_RAW, 0));
  return 0;
}
