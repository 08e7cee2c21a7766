/* S1: what can be done to the files behind descriptors 0 and 1, without any path to them? Answers on descriptor 2. */
#include "report.h"
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>

static void say(const char *name, int result) {
  dprintf(2, "%s %s\n", name, result >= 0 ? "OK" : strerrorname_np(errno));
}

int main(void) {
  struct timeval times[2] = {{1, 0}, {1, 0}};
  dprintf(1, "said\n");
  say("mode-of-input", fchmod(0, 0777));
  say("times-of-input", futimes(0, times));
  say("mode-of-output", fchmod(1, 04777));
  say("attribute-of-output", fsetxattr(1, "user.x", "1", 1, 0));
  say("length-of-output", ftruncate(1, 0));
  return 0;
}
