#!/bin/bash
# A Debian kernel as $CACHE/kernel-$KERNEL/{vmlinuz,modules,version}. 6.12 comes from the backports, 6.1 is bookworm's, and
# "newest" is what the backports of the release after it have today: for what older kernels cannot show.
. "$(dirname "$0")/common.sh"
target=$CACHE/kernel-$KERNEL
[ ! -e "$target/version" ] || exit 0
release=
case $KERNEL in
6.12) meta=linux-image-6.12-cloud-amd64 ;;
6.1) meta=linux-image-cloud-amd64 ;;
newest) meta=linux-image-cloud-amd64 release=trixie-backports ;;
*) say "no kernel $KERNEL: 6.12, 6.1 or newest"; exit 2 ;;
esac
private_apt $release
depends() { apt-cache "${apt_options[@]}" ${release:+-t "$release"} depends "$1" | awk '/Depends: linux-(image|binary|modules|base)-[0-9]/ { print $2 }'; }
package=$(depends "$meta" | awk '/linux-image-/ && !seen++')
say "kernel $KERNEL: $package"
rm -rf "$target"
mkdir -p "$target"
cd "$target"
# newer packages are split: the program, its modules, and the lists of what is built in
for part in "$package" $(depends "$package"); do
  apt-get "${apt_options[@]}" -qq download "$part${release:+/$release}"
done
for deb in *.deb; do dpkg -x "$deb" unpacked; done
mv unpacked/lib/modules modules 2>/dev/null || mv unpacked/usr/lib/modules modules
mv unpacked/boot/vmlinuz-* vmlinuz 2>/dev/null || mv modules/*/vmlinuz vmlinuz
rm -rf unpacked ./*.deb
ls modules >version
