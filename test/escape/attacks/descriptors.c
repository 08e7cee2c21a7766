/* S1: which descriptors did this process get, and can they or the working directory lead outside? */
#include "report.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

int main(void) {
  char cwd[PATH_MAX];
  DIR *dir = opendir("/proc/self/fd");
  if (!dir) return 1;
  for (struct dirent *entry; (entry = readdir(dir));) {
    int fd = atoi(entry->d_name);
    struct stat st;
    if (entry->d_name[0] == '.' || fd == dirfd(dir) || fstat(fd, &st)) continue;
    const char *kind = S_ISDIR(st.st_mode) ? "directory" : S_ISREG(st.st_mode) ? "file" : "stream";
    printf("fd-%d %s\n", fd, kind);
  }
  printf("cwd %s\n", getcwd(cwd, sizeof cwd) && cwd[0] == '/' ? cwd : "unreachable");
  /* The kernel's answer when the working directory is outside of the root: the string has no leading slash. */
  long length = syscall(SYS_getcwd, cwd, sizeof cwd);
  printf("raw-cwd %s\n", length > 0 && cwd[0] == '/' ? "reachable" : "unreachable");
  return 0;
}
