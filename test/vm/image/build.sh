#!/bin/bash
# build.sh: everything that the VM boots from, cached in $CACHE; a second run with the same inputs does nothing.
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || { say 'building the image needs root (chroot, file owners)'; exit 1; }
[ "$(uname -m)" = x86_64 ] || { say 'only x86-64 guests are built'; exit 1; }
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
# what a build that was killed left: nobody else builds now
rm -rf --one-file-system "$CACHE"/puzzled-{tree,initrd}.?????? "$CACHE"/{base-*.tar,root-*.ext4,data}.new
export CACHE KERNEL
bash "$here/tools.sh" 9>&-
bash "$here/kernel.sh" 9>&-
bash "$here/root.sh" 9>&-
if [ ! -e "$CACHE/data.xfs" ]; then
  say 'data disk (XFS)'
  truncate -s 2G "$CACHE/data.new"
  with_tools mkfs.xfs -q -m reflink=1,crc=1 -n ftype=1 "$CACHE/data.new"
  mv "$CACHE/data.new" "$CACHE/data.xfs"
fi
