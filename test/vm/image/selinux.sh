#!/bin/bash
# selinux.sh TREE POLICY: compiles and installs our policy module into the tree, then labels every file. Here this
# takes seconds, in the emulated guest half a minute. Runs in a mount namespace of its own.
. "$(dirname "$0")/common.sh"
tree=$1 policy=$2
mount -t proc proc "$tree/proc"
sed -i 's/^SELINUX=.*/SELINUX=permissive/' "$tree/etc/selinux/config"
mkdir "$tree/tmp/policy"
cp "$policy"/* "$tree/tmp/policy/"
say 'SELinux module'
chroot "$tree" make -s -C /tmp/policy NAME=default puzzled.pp >&2
chroot "$tree" semodule -n -i /tmp/policy/puzzled.pp
# V8 needs execmem. The boolean gives it to unconfined_t, in which the tests run; a confined domain needs its own rule.
chroot "$tree" setsebool -P -N allow_execmem 1 2>&1 | { grep -v sddm >&2 || true; }
grep -q allow_execmem=1 "$tree/var/lib/selinux/default/active/booleans.local"
rm -rf "$tree/tmp/policy"
say 'labels'
chroot "$tree" setfiles -F -e /proc /etc/selinux/default/contexts/files/file_contexts / 2>&1 | tail -3 >&2
