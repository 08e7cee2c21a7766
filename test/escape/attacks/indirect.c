/* S22: runs the program argv[1] by every way around a list of allowed programs; argv[2] is a loader, argv[3] a folder. */
#include "report.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static const char *tool;
static char label[64];
/* The tool is `echo`: where it runs, it says so itself. */
static char *const arguments[] = {"echo", label, 0};
extern char **environ;

static int copied_to(int to) {
  struct stat st;
  int from = open(tool, O_RDONLY | O_CLOEXEC);
  if (from < 0 || to < 0 || fstat(from, &st)) return -1;
  while (sendfile(to, from, 0, (size_t)st.st_size) > 0) continue;
  /* What is open for writing cannot be executed: take it again, for reading. */
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", to);
  int again = open(path, O_RDONLY | O_CLOEXEC);
  close(to);
  return again;
}

static long run_descriptor(int fd) {
  return fd < 0 ? -1 : syscall(SYS_execveat, fd, "", arguments, environ, AT_EMPTY_PATH);
}

static long run_copy(const char *path) {
  int fd = copied_to(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
  if (fd < 0) return -1;
  close(fd);
  return execve(path, arguments, environ);
}

static long run_link(const char *path, int hard) {
  unlink(path);
  if (hard ? link(tool, path) : symlink(tool, path)) return -1;
  return execve(path, arguments, environ);
}

static long run_script(const char *path) {
  FILE *file = fopen(path, "w");
  if (!file) return -1;
  fprintf(file, "#!%s\n", tool);
  fchmod(fileno(file), 0755);
  fclose(file);
  return execve(path, arguments, environ);
}

static long run_open(int flags) {
  char path[64];
  int fd = open(tool, flags | O_CLOEXEC);
  if (fd < 0) return -1;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return execve(path, arguments, environ);
}

static long run_loader(const char *loader) {
  char *const argv[] = {"ld.so", (char *)tool, label, 0};
  return execve(loader, argv, environ);
}

static long run_shell(const char *command) {
  char text[512];
  snprintf(text, sizeof text, command, tool);
  int status = system(text);
  if (status == 0) _exit(0);
  errno = WEXITSTATUS(status) == 126 ? EACCES : WEXITSTATUS(status) == 127 ? ENOENT : EIO;
  return -1;
}

int main(int argc, char **argv) {
  char path[512];
  if (argc < 4) return 1;
  tool = argv[1];
#define TRY(name, expression) (snprintf(label, sizeof label, "%s OK", name), (void)0); ATTEMPT(name, expression)
#define IN(name) (snprintf(path, sizeof path, "%s/" name, argv[3]), path)
  TRY("execve", execve(tool, arguments, environ));
  TRY("execveat", run_descriptor(open(tool, O_PATH)));
  TRY("proc-fd", run_open(O_RDONLY));
  TRY("proc-fd-path", run_open(O_PATH));
  TRY("memfd", run_descriptor(copied_to((int)syscall(SYS_memfd_create, "x", 0))));
  TRY("memfd-sealed", run_descriptor(copied_to((int)syscall(SYS_memfd_create, "x", 8))));
  TRY("tmpfile", run_descriptor(copied_to(open(argv[3], O_TMPFILE | O_RDWR, 0755))));
  TRY("copy", run_copy(IN("copy")));
  TRY("symlink", run_link(IN("symlink"), 0));
  TRY("hardlink", run_link(IN("hardlink"), 1));
  TRY("interpreter", run_script(IN("script")));
  TRY("shell", run_shell("exec %s shell OK"));
  TRY("shell-compound", run_shell("true & exec %s shell-compound OK"));
  TRY("loader", run_loader(argv[2]));
  return 0;
}
