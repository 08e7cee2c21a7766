#!/bin/bash
# The guest's root filesystem, $CACHE/root-$KERNEL.ext4, and its initrd. Rebuilt when one of its inputs changes.
. "$(dirname "$0")/common.sh"
image=$CACHE/root-$KERNEL.ext4
kernel=$CACHE/kernel-$KERNEL
packages=systemd,systemd-sysv,dbus,polkitd,udev,kmod,util-linux,libbpf1,bpftool,libseccomp2,libnftables1,nftables
packages+=,xfsprogs,e2fsprogs,btrfs-progs,quota,attr,acl,iproute2,procps,curl,ca-certificates,git,make,openssl,strace,python3-dbus
packages+=,selinux-policy-default,selinux-policy-dev,selinux-utils,policycoreutils,checkpolicy,semodule-utils,m4,libstdc++6,busybox-static

base=$CACHE/base-$(sha256sum <<<"$packages" | cut -c1-16).tar
key=$({
  echo "$packages" "$(node --version)"
  cat "$here"/* "$repository"/test/vm/guest/{job.sh,power-cut-init,vm-job.service} "$repository"/selinux/* "$kernel/version"
} | sha256sum)
[ ! -e "$image" ] || [ "$(cat "$image.key")" != "$key" ] || exit 0

if [ ! -e "$base" ]; then
  private_apt
  say 'base system (mmdebstrap)'
  rm -f "$CACHE"/base-*.tar
  with_tools mmdebstrap --quiet --mode=root --variant=minbase --format=tar --include="$packages" \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    bookworm "$base.new" "$CACHE/apt/guest.list"
  mv "$base.new" "$base"
fi

say 'guest layer'
tree=$(mktemp -d "$CACHE/puzzled-tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
tar -C "$tree" --xattrs -xf "$base"
version=$(cat "$kernel/version")
mkdir -p "$tree/usr/lib/modules"
cp -a "$kernel/modules/$version" "$tree/usr/lib/modules/"
chroot "$tree" depmod -a "$version"
install -m755 "$(readlink -f "$(command -v node)")" "$tree/usr/bin/node"
npm_dir=$(dirname "$(readlink -f "$(command -v npm)")")/..
mkdir -p "$tree/usr/lib/node_modules"
cp -a "$npm_dir" "$tree/usr/lib/node_modules/npm"
ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$tree/usr/bin/npm"
ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$tree/usr/bin/npx"
bash "$here/configure.sh" "$tree"
# libselinux works through /proc/self: the chroot gets one, in a mount namespace that ends with the command
unshare --mount bash "$here/selinux.sh" "$tree" "$repository/selinux"

say 'filesystem image'
megabytes=$(($(du -sm "$tree" | cut -f1) * 115 / 100 + 1500))
rm -f "$image.new"
truncate -s "${megabytes}M" "$image.new"
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=1,nodiscard -N 120000 -m 0 \
  -d "$tree" "$image.new"
bash "$here/initrd.sh" "$tree" "$version" "$kernel/initrd.img"
mv "$image.new" "$image"
echo "$key" >"$image.key"
