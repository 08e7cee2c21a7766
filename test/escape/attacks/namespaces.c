/* Namespaces by the names that nsfs gives them: `namespaces HOLDER NAME...`, of init and of files in which one is pinned. */
#include "report.h"
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const char *const KINDS[] = {"cgroup", "ipc", "mnt", "net", "pid", "uts"};

static int place(const char *holder, const char *kind) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/%s", holder, kind);
  return open(path, O_RDONLY | O_CLOEXEC);
}

/* Own ones need no right to be opened: what refuses to join them refuses to join any. */
static long join(int fd) { return fd < 0 ? fd : setns(fd, 0); }

static long pin(const char *holder) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", holder);
  close(open("pinned", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  long result = mount(path, "pinned", 0, MS_BIND, 0);
  if (result == 0) umount("pinned");
  int kept = errno;
  unlink("pinned");
  errno = kept;
  return result;
}

int main(int argc, char **argv) {
  char name[64];
  if (argc < 2) return 2;
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    snprintf(name, sizeof name, "open-%s", KINDS[i]);
    ATTEMPT(name, place(argv[1], KINDS[i]));
    snprintf(name, sizeof name, "join-%s", KINDS[i]);
    ATTEMPT(name, join(place("self", KINDS[i])));
  }
  ATTEMPT("pin-own", pin("self"));
  for (int i = 2; i < argc; i++) {
    snprintf(name, sizeof name, "open-name-%d", i - 1);
    ATTEMPT(name, open(argv[i], O_RDONLY | O_CLOEXEC));
    snprintf(name, sizeof name, "is-namespace-%d", i - 1);
    ATTEMPT(name, ioctl(open(argv[i], O_RDONLY | O_CLOEXEC), NS_GET_NSTYPE));
    snprintf(name, sizeof name, "join-name-%d", i - 1);
    ATTEMPT(name, join(open(argv[i], O_RDONLY | O_CLOEXEC)));
  }
  return 0;
}
