#!/bin/sh
# Runs node in a room of its own: a mount and a network namespace, and where PUZZLED_ROOM_CGROUP names a cgroup, that
# cgroup as the root of the hierarchy. Stands in for `node` when a test worker is forked (room.ts), so every
# step replaces this process: the pid that the parent knows stays the worker's.
set -eu
case ${1-} in
--inside)
  shift
  ip link set lo up
  if [ -n "${PUZZLED_ROOM_CGROUP-}" ]; then
    mount --bind "$PUZZLED_ROOM_CGROUP" "$PUZZLED_ROOM_HIERARCHY"
    unset PUZZLED_ROOM_CGROUP PUZZLED_ROOM_HIERARCHY
  fi
  exec "$PUZZLED_ROOM_NODE" "$@"
  ;;
esac
set -- --propagation private -- "$0" --inside "$@"
if [ -n "${PUZZLED_ROOM_CGROUP-}" ]; then
  echo $$ >"$PUZZLED_ROOM_CGROUP/cgroup.procs"
  set -- --cgroup "$@"
fi
exec unshare --mount --net "$@"
