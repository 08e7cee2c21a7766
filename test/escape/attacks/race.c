/*
 * S45: openat is asked of a supervisor (the listener's number is printed). One thread opens the path in `name`, another
 * one rewrites it all the time between argv[1] and argv[2] (of the same length). Counts what was really opened.
 */
#include "report.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static char name[512];
static const char *harmless, *secret;

static void *rewrite(void *unused) {
  for (;;) {
    memcpy(name, secret, strlen(secret));
    memcpy(name, harmless, strlen(harmless));
  }
  return unused;
}

static int listen_to_openat(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = 4, .filter = code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                      SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
}

int main(int argc, char **argv) {
  if (argc < 4) return 1;
  harmless = argv[1];
  secret = argv[2];
  strcpy(name, harmless);
  struct stat good, st;
  if (stat(harmless, &good)) return 1;
  int listener = listen_to_openat();
  printf("listener %d\n", listener);
  fflush(stdout);
  getchar(); /* until the supervisor has taken it */
  close(listener);
  pthread_t thread;
  pthread_create(&thread, 0, rewrite, 0);
  long wrong = 0, right = 0, refused = 0;
  for (long round = atol(argv[3]); round > 0; round--) {
    long fd = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      refused++;
      continue;
    }
    if (fstat((int)fd, &st) == 0 && st.st_ino == good.st_ino) right++;
    else wrong++;
    close((int)fd);
  }
  printf("right %ld\nwrong %ld\nrefused %ld\n", right, wrong, refused);
  return 0;
}
