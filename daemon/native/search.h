/* How the program of a command is found and executed: what execvp does, for a program without libc. */
enum { ENOENT = 2, EINTR = 4, ENOEXEC = 8, EACCES = 13, ENOTDIR = 20, ENAMETOOLONG = 36 };
enum { AT_FDCWD = -100, O_CLOEXEC = 02000000, PATH_LIMIT = 4096, LOOKED_AT = 256 };

static const char *search_path(char **env)
{
	for (; *env; env++) {
		const char *at = *env, *name = "PATH=";
		while (*name && *at == *name)
			at++, name++;
		if (*name == 0)
			return at;
	}
	return "/usr/local/bin:/usr/bin:/bin";
}

/*
 * As POSIX has it: a file whose first line holds a NUL is no text, but a program of another processor or a broken one. A
 * shell would take its bytes for commands, and make files of them. What cannot be read is left to the shell to refuse.
 */
static int is_text(const char *file)
{
	char first[LOOKED_AT];
	long fd = call(NR_openat, AT_FDCWD, (long)file, O_CLOEXEC, 0, 0, 0);
	long length = fd < 0 ? 0 : call(NR_read, fd, (long)first, sizeof first, 0, 0, 0);

	if (fd >= 0)
		call(NR_close, fd, 0, 0, 0, 0, 0);
	for (long i = 0; i < length && first[i] != '\n'; i++)
		if (first[i] == 0)
			return 0;
	return 1;
}

/* execve, and a text file without an interpreter line goes to the shell. argv[-1] and argv[0] may be overwritten. */
static long execute(char *file, char **argv, char **env)
{
	long result = call(NR_execve, (long)file, (long)argv, (long)env, 0, 0, 0);
	if (result == -ENOEXEC && is_text(file)) {
		argv[-1] = "/bin/sh";
		argv[0] = file;
		result = call(NR_execve, (long)argv[-1], (long)(argv - 1), (long)env, 0, 0, 0);
	}
	return result;
}

/* As execvp: the first directory in which it can be executed; "permission denied" wins over "not found". */
static long execute_in_path(char **argv, char **env)
{
	static char file[2 * PATH_LIMIT];
	const char *name = argv[0], *at = search_path(env);
	long name_length = 0, denied = 0, slash = 0;

	for (; name[name_length]; name_length++)
		slash |= name[name_length] == '/';
	if (slash)
		return execute(argv[0], argv, env);
	if (name_length == 0 || name_length >= PATH_LIMIT)
		return -ENOENT;
	for (;; at++) {
		long length = 0, result;
		for (; *at && *at != ':'; at++)
			if (length < PATH_LIMIT)
				file[length++] = *at;
		/* An empty entry means the working directory, as everywhere. */
		if (length > 0 && length < PATH_LIMIT)
			file[length++] = '/';
		for (long i = 0; i <= name_length; i++)
			file[length + i] = name[i];
		result = length >= PATH_LIMIT ? -ENOENT : execute(file, argv, env);
		if (result == -EACCES)
			denied = 1;
		else if (result != -ENOENT && result != -ENOTDIR && result != -ENAMETOOLONG)
			return result;
		if (*at == 0)
			return denied ? -EACCES : -ENOENT;
	}
}
