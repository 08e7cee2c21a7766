/*
 * inotify: `watchers` takes every instance that there is and holds them until its input ends; `watchers once` takes one.
 * `watchers see PATH...` watches until its input ends and says of which of them it heard something.
 */
#include "report.h"
#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>

enum { MOST = 16 };

static int see(int count, char **paths) {
  char events[65536], end;
  int heard[MOST] = {0}, watches[MOST], queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  for (int i = 0; i < count && i < MOST; i++) {
    watches[i] = inotify_add_watch(queue, paths[i], IN_MODIFY | IN_ATTRIB | IN_CREATE);
    printf("watch-%d %s\n", i, watches[i] >= 0 ? "OK" : strerrorname_np(errno));
  }
  report("fanotify", fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY));
  printf("ready OK\n");
  fflush(stdout);
  while (read(0, &end, 1) > 0) continue;
  long length = read(queue, events, sizeof events);
  for (char *at = events; at < events + length; at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
    for (int i = 0; i < count && i < MOST; i++) heard[i] |= ((struct inotify_event *)at)->wd == watches[i];
  for (int i = 0; i < count && i < MOST; i++) printf("heard-%d %s\n", i, heard[i] ? "something" : "nothing");
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2) return see(argc - 2, argv + 2);
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
