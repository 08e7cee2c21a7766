// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * The feature probe: counts opened files while it is attached, and forbids nothing. That the number grows shows that
 * the BPF LSM is really called; on a kernel that was booted without "bpf" in lsm= it can be attached all the same.
 */
#define SEC(name) __attribute__((section(name), used))

unsigned long long calls = 0;

SEC("lsm/file_open")
int puzzle_probe(unsigned long long *context)
{
	(void)context;
	__sync_fetch_and_add(&calls, 1);
	return 0;
}

/* The kernel offers LSM hooks to GPL-compatible programs only. */
char LICENSE[] SEC("license") = "GPL";
