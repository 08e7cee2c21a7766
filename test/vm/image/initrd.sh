#!/bin/bash
# initrd.sh TREE VERSION OUT: busybox and the few modules that the root disk needs; everything else is in the root.
. "$(dirname "$0")/common.sh"
tree=$1 version=$2 out=$3
work=$(mktemp -d "$CACHE/puzzled-initrd.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,modules,proc,sys,dev,newroot}
cp "$tree/bin/busybox" "$work/bin/busybox"
for module in virtio_pci virtio_blk ext4; do
  # built-in modules answer "builtin"
  { chroot "$tree" modprobe -S "$version" --show-depends "$module" || true; } | awk '$1 == "insmod" { print $2 }' |
    while read -r file; do
      name=$(basename "$file" .xz)
      ! grep -qxs "$name" "$work/modules/order" || continue
      case $file in
      *.xz) xz -dc "$tree$file" >"$work/modules/$name" ;;
      *) cp "$tree$file" "$work/modules/$name" ;;
      esac
      echo "$name" >>"$work/modules/order"
    done
done
install -m755 "$here/initrd-init" "$work/init"
cd "$work"
find . -print0 | with_tools cpio -0 -o -H newc --quiet >"$out"
