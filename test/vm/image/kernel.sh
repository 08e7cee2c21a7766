#!/bin/bash
# A Debian kernel as $CACHE/kernel-$KERNEL/{vmlinuz,modules,version}. 6.12 comes from the backports, 6.1 is bookworm's.
. "$(dirname "$0")/common.sh"
target=$CACHE/kernel-$KERNEL
[ ! -e "$target/version" ] || exit 0
case $KERNEL in
6.12) meta=linux-image-6.12-cloud-amd64 ;;
6.1) meta=linux-image-cloud-amd64 ;;
*) say "no kernel $KERNEL: 6.12 or 6.1"; exit 2 ;;
esac
private_apt
package=$(apt-cache "${apt_options[@]}" depends "$meta" | awk '/Depends: linux-image-/ { print $2; exit }')
say "kernel $KERNEL: $package"
rm -rf "$target"
mkdir -p "$target"
cd "$target"
apt-get "${apt_options[@]}" -qq download "$package"
dpkg -x ./*.deb unpacked
mv unpacked/boot/vmlinuz-* vmlinuz
mv unpacked/lib/modules modules 2>/dev/null || mv unpacked/usr/lib/modules modules
rm -rf unpacked ./*.deb
ls modules >version
