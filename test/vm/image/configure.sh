#!/bin/bash
# configure.sh TREE: makes the Debian tree a guest that boots quickly under emulation, where each process costs
# 30 to 100 ms, and runs one job.
. "$(dirname "$0")/common.sh"
tree=$1
units=$tree/etc/systemd/system
echo puzzled-vm >"$tree/etc/hostname"
printf '127.0.0.1 localhost puzzled-vm\n::1 localhost\n' >"$tree/etc/hosts"
echo '/dev/vda / ext4 rw,noatime 0 0' >"$tree/etc/fstab"
echo 0123456789abcdef0123456789abcdef >"$tree/etc/machine-id"
touch "$tree/etc/.updated" "$tree/var/.updated"
mkdir -p "$tree/data" "$tree/opt/puzzled" "$units/multi-user.target.wants" "$tree/etc/systemd/system-generators" \
  "$tree"/etc/systemd/{journald,system}.conf.d
install -m755 "$repository/test/vm/guest/job.sh" "$tree/usr/local/sbin/vm-job"
install -m755 "$repository/test/vm/guest/power-cut-init" "$tree/usr/local/sbin/power-cut-init"
install -m644 "$repository/test/vm/guest/vm-job.service" "$units/vm-job.service"
ln -sf ../vm-job.service "$units/multi-user.target.wants/vm-job.service"
ln -sf /lib/systemd/system/multi-user.target "$units/default.target"

# people and groups for tests of permissions: a requester, a reviewer, a stranger
chroot "$tree" groupadd --system puzzled
chroot "$tree" groupadd --system puzzled-reviewers
for user in alice bob mallory; do chroot "$tree" useradd --create-home --shell /bin/bash "$user"; done
chroot "$tree" usermod --append --groups puzzled alice
chroot "$tree" usermod --append --groups puzzled,puzzled-reviewers bob

mask() { for unit; do ln -sf /dev/null "$units/$unit"; done; }
mask getty@.service serial-getty@.service console-getty.service getty.target systemd-timesyncd.service \
  systemd-networkd.service systemd-resolved.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer \
  e2scrub_reap.service fstrim.timer dpkg-db-backup.timer systemd-update-utmp.service \
  systemd-update-utmp-runlevel.service systemd-random-seed.service systemd-pstore.service ldconfig.service \
  systemd-hwdb-update.service systemd-journal-catalog-update.service systemd-boot-system-token.service \
  systemd-machine-id-commit.service systemd-firstboot.service systemd-repart.service systemd-rfkill.service \
  xfs_scrub_all.timer selinux-autorelabel-mark.service systemd-tpm2-setup.service systemd-binfmt.service \
  dev-hugepages.mount proc-sys-fs-binfmt_misc.automount systemd-udev-settle.service quota.service \
  quotarpc.service quotaon.service systemd-quotacheck.service modprobe@.service systemd-initctl.socket \
  systemd-ask-password-console.path systemd-ask-password-wall.path sys-kernel-config.mount \
  sys-fs-fuse-connections.mount systemd-journal-flush.service systemd-remount-fs.service nftables.service
for generator in gpt-auto cryptsetup veritysetup integritysetup hibernate-resume rc-local system-update run \
  bless-boot getty sysv debug; do
  ln -sf /dev/null "$tree/etc/systemd/system-generators/systemd-$generator-generator"
done
printf '[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\n' >"$tree/etc/systemd/journald.conf.d/vm.conf"
printf '[Manager]\nDefaultTimeoutStartSec=180s\nDefaultTimeoutStopSec=20s\nShowStatus=no\n' \
  >"$tree/etc/systemd/system.conf.d/vm.conf"
# udev would load these at boot, and nothing here needs them
printf 'blacklist %s\n' kvm kvm_amd kvm_intel ahci libahci libata ata_piix sd_mod sr_mod psmouse serio_raw evdev \
  button i2c_i801 lpc_ich powernow_k8 acpi_cpufreq aesni_intel sha1_ssse3 sha256_ssse3 sha512_ssse3 \
  ghash_clmulni_intel crct10dif_pclmul polyval_clmulni cryptd edac_mce_amd ccp crc32_pclmul crc32c_intel pcspkr \
  floppy >"$tree/etc/modprobe.d/vm.conf"
rm -rf "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/*
