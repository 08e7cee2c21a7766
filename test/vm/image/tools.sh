#!/bin/bash
# Unpacks (does not install) QEMU, mmdebstrap and what they need into $CACHE/tools.
. "$(dirname "$0")/common.sh"
[ ! -e "$CACHE/tools/complete" ] || exit 0
private_apt
say 'unpacking qemu and mmdebstrap'
rm -rf "$CACHE/tools" "$CACHE/debs"
mkdir -p "$CACHE/tools" "$CACHE/debs/partial"
fetch=(-y -qq -d --no-install-recommends -o Dir::Cache::archives="$CACHE/debs" install)
wanted=(qemu-system-x86 qemu-utils mmdebstrap/bookworm xfsprogs/bookworm busybox-static cpio)
# QEMU 10 of the backports runs fork-heavy guests twice as fast as 7.2; where it cannot be had, 7.2 works too.
from=/bookworm-backports
apt-get "${apt_options[@]}" -t bookworm-backports "${fetch[@]}" "${wanted[@]}" >/dev/null 2>&1 || {
  from=
  apt-get "${apt_options[@]}" "${fetch[@]}" "${wanted[@]}" >/dev/null
}
# apt leaves out what the host has installed; the tools must come from the cache all the same.
cd "$CACHE/debs"
for package in qemu-system-x86 qemu-system-common qemu-system-data seabios qemu-utils; do
  ls "${package}"_*.deb >/dev/null 2>&1 || apt-get "${apt_options[@]}" -qq download "$package$from"
done
for package in mmdebstrap xfsprogs busybox-static cpio; do
  ls "${package}"_*.deb >/dev/null 2>&1 || apt-get "${apt_options[@]}" -qq download "$package"
done
for deb in *.deb; do dpkg -x "$deb" "$CACHE/tools"; done
with_tools qemu-system-x86_64 --version | head -1 >&2
touch "$CACHE/tools/complete"
