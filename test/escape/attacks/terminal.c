/* S6: types into the terminal on descriptor 0. `own` makes a terminal first (the control outside). */
#include "report.h"
#include <fcntl.h>
#include <sys/ioctl.h>

static int own_terminal(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) return -1;
  setsid();
  int slave = open(ptsname(master), O_RDWR);
  ioctl(slave, TIOCSCTTY, 0);
  return dup2(slave, 0);
}

int main(int argc, char **argv) {
  char letter = '#';
  char selection = 3;
  int waiting = 0;
  signal(SIGHUP, SIG_IGN);
  if (argc > 1 && !strcmp(argv[1], "own") && fork() != 0) return wait(0) < 0;
  if (argc > 1 && !strcmp(argv[1], "own") && own_terminal() < 0) return 1;
  report("tiocsti", ioctl(0, TIOCSTI, &letter));
  report("tiocsti-high-bits", syscall(SYS_ioctl, 0L, TIOCSTI | (1UL << 32), &letter));
  report("tioclinux", ioctl(0, TIOCLINUX, &selection));
  report("tiocsetd", ioctl(0, TIOCSETD, &waiting));
  report("tcgets", isatty(0) ? 0 : -1);
  ioctl(0, FIONREAD, &waiting);
  return 0;
}
