/* Stands for the services of a host: listen stream PATH... dgram PATH... ; an @ begins an abstract name. */
#include "report.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int serve(const char *path, int type) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(path);
  if (length >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = 0;
  socklen_t size = offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1);
  int fd = socket(AF_UNIX, type, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size)) return -1;
  if (path[0] != '@') chmod(path, 0666);
  return type == SOCK_STREAM ? listen(fd, 64) : 0;
}

int main(int argc, char **argv) {
  int type = SOCK_STREAM;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "stream")) type = SOCK_STREAM;
    else if (!strcmp(argv[i], "dgram")) type = SOCK_DGRAM;
    else if (serve(argv[i], type)) return perror(argv[i]), 1;
  }
  printf("ready OK\n");
  fflush(stdout);
  pause();
  return 0;
}
