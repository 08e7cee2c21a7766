/* What documents call sudo: becomes root and says who asked. It lives on a filesystem that only the test's room sees. */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char number[16];
	struct passwd *who = getpwuid(getuid());

	if (argc < 2 || who == NULL)
		return 1;
	snprintf(number, sizeof number, "%u", who->pw_uid);
	setenv("SUDO_UID", number, 1);
	snprintf(number, sizeof number, "%u", who->pw_gid);
	setenv("SUDO_GID", number, 1);
	setenv("SUDO_USER", who->pw_name, 1);
	setenv("HOME", "/root", 1);
	if (setgroups(0, NULL) != 0 || setgid(0) != 0 || setuid(0) != 0)
		return 1;
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
