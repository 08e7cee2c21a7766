/*
 * Descriptors over a unix socket. `hand PATH` sends directories, a FIFO, a socket that lingers, and thousands at once, each
 * over a connection of its own; `hand PATH stay` stays until it is killed. `hand PATH COUNT` listens there, takes that many
 * descriptors, and says that it has them.
 */
#include "report.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { MOST = 200, MESSAGES = 20, LINGER_SECONDS = 300 };

union room {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(MOST * sizeof(int))];
};

static struct sockaddr_un place = {.sun_family = AF_UNIX};

static int reach(void) {
  int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(end, (struct sockaddr *)&place, sizeof place)) exit(3);
  return end;
}

static long send_copies(int end, int fd, int count) {
  union room room = {0};
  struct iovec word = {"h", 1};
  struct msghdr message = {.msg_iov = &word, .msg_iovlen = 1, .msg_control = &room};
  message.msg_controllen = CMSG_SPACE(count * sizeof fd);
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof fd);
  for (int i = 0; i < count; i++) memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
  return sendmsg(end, &message, MSG_NOSIGNAL);
}

/* Whoever was hung up on before the message was there tries again: what counts is what is said to the message. */
static long hand_over(int fd, int count) {
  for (;;) {
    int end = reach();
    if (fd < 0) exit(4);
    long result = send_copies(end, fd, count);
    int kept = errno;
    close(end);
    errno = kept;
    if (result >= 0 || (errno != EPIPE && errno != ECONNRESET)) return result;
  }
}

/* Full of bytes that its other end, which stays here, never reads: to close the last copy of it takes LINGER_SECONDS. */
static int lingering(void) {
  static char bytes[65536];
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  struct linger patience = {.l_onoff = 1, .l_linger = LINGER_SECONDS};
  int listener = socket(AF_INET, SOCK_STREAM, 0), end = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&here, length) || listen(listener, 1)) return -1;
  getsockname(listener, (struct sockaddr *)&here, &length);
  if (connect(end, (struct sockaddr *)&here, length) || accept(listener, 0, 0) < 0) return -1;
  setsockopt(end, SOL_SOCKET, SO_LINGER, &patience, sizeof patience);
  fcntl(end, F_SETFL, O_NONBLOCK);
  while (send(end, bytes, sizeof bytes, 0) > 0) continue;
  return end;
}

static int fifo(void) {
  mkfifo("fifo", 0600);
  int end = open("fifo", O_RDWR | O_CLOEXEC);
  unlink("fifo");
  return end;
}

/* All arrive, or what the first one that does not was answered with. */
static long thousands(void) {
  int fd = open("/", O_RDONLY | O_CLOEXEC);
  long result = 0;
  for (int left = MESSAGES; left > 0 && result >= 0; left--) result = hand_over(fd, MOST);
  return result;
}

static int take(int wanted) {
  struct rlimit many = {wanted + 64, wanted + 64};
  int listener = socket(AF_UNIX, SOCK_STREAM, 0), taken = 0;
  setrlimit(RLIMIT_NOFILE, &many);
  if (bind(listener, (struct sockaddr *)&place, sizeof place) || listen(listener, 64)) return 1;
  printf("ready OK\n");
  fflush(stdout);
  while (taken < wanted) {
    union room room;
    char text[8];
    struct iovec words = {text, sizeof text};
    struct msghdr message = {.msg_iov = &words, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room};
    int end = accept(listener, 0, 0);
    if (recvmsg(end, &message, 0) <= 0) return 1;
    if (message.msg_controllen > 0) taken += (CMSG_FIRSTHDR(&message)->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    close(end);
  }
  printf("taken %d\n", taken);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2 || strlen(argv[1]) >= sizeof place.sun_path) return 2;
  strcpy(place.sun_path, argv[1]);
  if (argc > 2 && strcmp(argv[2], "stay")) return take(atoi(argv[2]));
  ATTEMPT("root", hand_over(open("/", O_RDONLY | O_CLOEXEC), 1));
  ATTEMPT("proc", hand_over(open("/proc", O_RDONLY | O_CLOEXEC), 1));
  ATTEMPT("fifo", hand_over(fifo(), 1));
  int end = lingering();
  /* Its last copy here ends with a process, which waits for nothing. */
  if (fork() > 0) {
    close(end);
    wait(0);
  } else {
    ATTEMPT("lingering", hand_over(end, 1));
    _exit(0);
  }
  ATTEMPT("thousands", thousands());
  if (argc > 2) pause();
  return 0;
}
