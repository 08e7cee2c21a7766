#!/bin/bash
# Runs the job that the host put on the job disk, hands back its output and status through virtio ports, powers off.
# Ports and disks are found in sysfs, without waiting for udev's links.
set -u
port() {
  local entry name
  for _ in {1..200}; do
    for entry in /sys/class/virtio-ports/*; do
      read -r name <"$entry/name" && [ "$name" = "$1" ] && { echo "/dev/${entry##*/}"; return; }
    done
    sleep .05
  done
}
disk() {
  local entry serial
  for entry in /sys/block/vd*; do
    serial=
    read -r serial 2>/dev/null <"$entry/serial"
    [ "$serial" = "$1" ] && { echo "/dev/${entry##*/}"; return; }
  done
}
work=/run/vm-job
mkdir -p $work
tr -d '\0' <"$(disk job)" >$work/job

# With SELinux, the data disk's root gets a type that services may use and new files inherit it; an overlay whose upper
# is on an unlabelled disk would turn read-only without an error. The project disk is one type as a whole.
data_label='' project_label=''
if [ -e /sys/fs/selinux/enforce ]; then
  data_label=,rootcontext=system_u:object_r:var_lib_t:s0 project_label=,context=system_u:object_r:usr_t:s0
fi
mount -t xfs -o prjquota,noatime$data_label "$(disk data)" /data
mount -t ext4 -o noatime$project_label "$(disk project)" /opt/puzzled
rmdir /opt/puzzled/lost+found
mkdir -m 1777 /data/tmp

# cgroup v2 lets no process sit beside child groups: the job moves into a leaf, so that it can make siblings.
own=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
mkdir "$own/job"
echo $$ >"$own/job/cgroup.procs"

export HOME=/root LANG=C.UTF-8 PUZZLED_VM=1 TMPDIR=/data/tmp
cd /opt/puzzled || exit
if grep -qw puzzled.shell /proc/cmdline; then
  setsid --ctty --wait bash --login -i </dev/ttyS0 >/dev/ttyS0 2>&1
  status=$?
else
  bash $work/job </dev/null >"$(port out)" 2>"$(port err)"
  status=$?
fi
echo "$status" >"$(port status)"
sleep .1
systemctl poweroff -ff
