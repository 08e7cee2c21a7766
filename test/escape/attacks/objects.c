/* S11: objects of the kernel that no directory holds. `make KEY NAME` has them until its input ends; `use` reaches for them. */
#include "report.h"
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

static int make(key_t key, const char *name) {
  umask(0);
  int memory = shmget(key, 4096, IPC_CREAT | 0666);
  int semaphores = semget(key, 1, IPC_CREAT | 0666);
  int messages = msgget(key, IPC_CREAT | 0666);
  mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0666, 0);
  int file = shm_open(name, O_CREAT | O_RDWR, 0666);
  char end;

  printf("numbers %d,%d,%d\n", memory, semaphores, messages);
  printf("ready %s\n", memory < 0 || semaphores < 0 || messages < 0 || queue < 0 || file < 0 ? "no" : "yes");
  fflush(stdout);
  while (read(0, &end, 1) > 0)
    ;
  shmctl(memory, IPC_RMID, 0);
  semctl(semaphores, 0, IPC_RMID);
  msgctl(messages, IPC_RMID, 0);
  mq_unlink(name);
  shm_unlink(name);
  return 0;
}

int main(int argc, char **argv) {
  int memory, semaphores, messages;
  if (argc < 4) return 2;
  key_t key = atoi(argv[2]);
  if (strcmp(argv[1], "make") == 0) return make(key, argv[3]);
  if (argc < 5 || sscanf(argv[4], "%d,%d,%d", &memory, &semaphores, &messages) != 3) return 2;
  ATTEMPT("memory-by-key", shmget(key, 0, 0));
  ATTEMPT("memory-by-number", (long)shmat(memory, 0, 0) == -1 ? -1 : 0);
  ATTEMPT("semaphores-by-key", semget(key, 0, 0));
  ATTEMPT("semaphores-by-number", semctl(semaphores, 0, GETVAL));
  ATTEMPT("messages-by-key", msgget(key, 0));
  ATTEMPT("messages-by-number", msgrcv(messages, argv, 0, 0, IPC_NOWAIT | MSG_NOERROR) < 0 && errno != ENOMSG ? -1 : 0);
  ATTEMPT("queue-by-name", mq_open(argv[3], O_RDWR));
  ATTEMPT("shared-file-by-name", shm_open(argv[3], O_RDWR, 0));
  return 0;
}
