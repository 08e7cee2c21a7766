/* One attempt per path: probe read|write|create|stat|execute|connect|sendto|list PATH... ; an @ begins an abstract socket. */
#include "report.h"
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static long reach(const char *path, int type) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(path);
  if (length >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = 0;
  socklen_t size = offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1);
  int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  if (type == SOCK_DGRAM) return sendto(fd, "x", 1, 0, (struct sockaddr *)&address, size);
  return connect(fd, (struct sockaddr *)&address, size);
}

static long attempt(const char *how, const char *path) {
  struct stat st;
  if (!strcmp(how, "read")) return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (!strcmp(how, "write")) return open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (!strcmp(how, "create")) return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (!strcmp(how, "stat")) return stat(path, &st);
  if (!strcmp(how, "list")) return opendir(path) ? 0 : -1;
  if (!strcmp(how, "execute")) return execl(path, path, (char *)0);
  if (!strcmp(how, "connect")) return reach(path, SOCK_STREAM);
  if (!strcmp(how, "sendto")) return reach(path, SOCK_DGRAM);
  errno = EINVAL;
  return -1;
}

int main(int argc, char **argv) {
  for (int i = 2; i < argc; i++) ATTEMPT(argv[i], attempt(argv[1], argv[i]));
  return 0;
}
