/* inotify: `watchers` takes every instance that there is and holds them until its input ends; `watchers once` takes one. */
#include "report.h"
#include <sys/inotify.h>

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) {
    report("inotify", inotify_init1(IN_CLOEXEC));
    return 0;
  }
  int taken = 0;
  while (inotify_init1(IN_CLOEXEC) >= 0) taken++;
  printf("last %s\ntaken %d\n", strerrorname_np(errno), taken);
  fflush(stdout);
  while (read(0, &taken, sizeof taken) > 0) continue;
  return 0;
}
