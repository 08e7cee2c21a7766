/* S14: keeps writing through a descriptor, a shared mapping and a detached grandchild, for as long as it lives. */
#include "report.h"
#include <fcntl.h>
#include <sys/mman.h>

static void write_for_ever(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0644);
  if (fd < 0 || ftruncate(fd, 4096)) _exit(1);
  volatile unsigned *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (unsigned n = 1;; n++) {
    page[0] = n;
    if (pwrite(fd, &n, sizeof n, 8) < 0) _exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc < 3) return 1;
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    write_for_ever(argv[2]);
  }
  printf("writing OK\n");
  fflush(stdout);
  write_for_ever(argv[1]);
}
