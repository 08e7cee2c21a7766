/* S8, S10, S15, S19 and the socket families: one attempt per door. Run in the branch and outside. */
#include "report.h"
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>

#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

static char here[] = "door-XXXXXX";

static long clone_with(unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, 0, 0);
  return pid;
}

static long clone3_with(unsigned long long flags) {
  struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
  long pid = syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, 0, 0);
  return pid;
}

static void namespaces(void) {
  ATTEMPT("unshare-user", unshare(CLONE_NEWUSER));
  ATTEMPT("unshare-mount", unshare(CLONE_NEWNS));
  ATTEMPT("unshare-net", unshare(CLONE_NEWNET));
  ATTEMPT("unshare-user-high-bits", syscall(SYS_unshare, (1L << 40) | CLONE_NEWUSER));
  ATTEMPT("clone-user", clone_with(CLONE_NEWUSER));
  ATTEMPT("clone-pid", clone_with(CLONE_NEWPID));
  ATTEMPT("clone3-user", clone3_with(CLONE_NEWUSER));
  ATTEMPT("clone-plain", clone_with(0));
  ATTEMPT("setns", setns(open("/proc/self/ns/net", O_RDONLY), 0));
}

static void privileges(void) {
  char params[120] = {0};
  ATTEMPT("io_uring_setup", syscall(SYS_io_uring_setup, 1, params));
  ATTEMPT("bpf", syscall(SYS_bpf, 0, params, sizeof params));
  ATTEMPT("userfaultfd", syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
  ATTEMPT("ptrace-self", ptrace(PTRACE_TRACEME, 0, 0, 0));
  ATTEMPT("keyring", syscall(SYS_add_key, "user", "x", "y", 1, -2 /* process keyring */));
  ATTEMPT("bind-mount", mount("/", "/", 0, MS_BIND, 0));
  ATTEMPT("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
  ATTEMPT("handle", open_by_handle_at(AT_FDCWD, (struct file_handle *)params, O_RDONLY));
  ATTEMPT("chroot", chroot("/"));
  ATTEMPT("setuid-root", setuid(0));
  ATTEMPT("sethostname", sethostname("x", 1));
  ATTEMPT("personality-randomize", syscall(SYS_personality, 0x40000));
}

static void files(void) {
  struct fsxattr attributes = {0};
  int flags = 0;
  int fd = mkstemp(here);
  ATTEMPT("mknod-char", mknod("door-char", S_IFCHR | 0600, makedev(1, 3)));
  ATTEMPT("mknod-whiteout", mknod("door-whiteout", S_IFCHR | 0600, makedev(0, 0)));
  ATTEMPT("mknod-block", mknod("door-block", S_IFBLK | 0600, makedev(7, 0)));
  ATTEMPT("mkfifo", mkfifo("door-fifo", 0600));
  ATTEMPT("chmod-setuid", fchmod(fd, 04755));
  ATTEMPT("get-attributes", ioctl(fd, FS_IOC_FSGETXATTR, &attributes));
  ioctl(fd, FS_IOC_FSGETXATTR, &attributes);
  ATTEMPT("set-project", ioctl(fd, FS_IOC_FSSETXATTR, &attributes));
  ATTEMPT("set-project-high-bits", syscall(SYS_ioctl, fd, FS_IOC_FSSETXATTR | (1UL << 32), &attributes));
  ioctl(fd, FS_IOC_GETFLAGS, &flags);
  ATTEMPT("set-flags", ioctl(fd, FS_IOC_SETFLAGS, &flags));
  ATTEMPT("file_setattr", syscall(SYS_file_setattr, -1, -1, -1, -1, -1));
  ATTEMPT("trusted-xattr", fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0));
  ATTEMPT("capability-xattr", fsetxattr(fd, "security.capability", "\1\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, 0));
  unlink(here);
  unlink("door-char");
  unlink("door-whiteout");
  unlink("door-block");
  unlink("door-fifo");
}

static void sockets(void) {
  ATTEMPT("tcp", socket(AF_INET, SOCK_STREAM, 0));
  ATTEMPT("udp6", socket(AF_INET6, SOCK_DGRAM, 0));
  ATTEMPT("raw", socket(AF_INET, SOCK_RAW, 1));
  ATTEMPT("packet", socket(AF_PACKET, SOCK_RAW, 0));
  ATTEMPT("packet-high-bits", syscall(SYS_socket, (1L << 32) | AF_PACKET, SOCK_RAW, 0));
  ATTEMPT("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  ATTEMPT("alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
  ATTEMPT("mptcp", socket(AF_INET, SOCK_STREAM, 262));
  ATTEMPT("netlink-route", socket(AF_NETLINK, SOCK_RAW, 0));
  ATTEMPT("netlink-netfilter", socket(AF_NETLINK, SOCK_RAW, 12));
}

int main(void) {
  namespaces();
  privileges();
  files();
  sockets();
  return 0;
}
