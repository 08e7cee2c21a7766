# Sourced by the image scripts. $CACHE is where everything lands; nothing is installed on the host.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../../.." && pwd)
: "${CACHE:?}" "${KERNEL:=6.12}"

say() { echo "vm image: $*" >&2; }

# Runs a command with the unpacked tools in front of the host's.
with_tools() {
  local lib=$CACHE/tools/usr/lib/x86_64-linux-gnu:$CACHE/tools/lib/x86_64-linux-gnu
  local bin=$CACHE/tools/usr/bin:$CACHE/tools/bin:$CACHE/tools/usr/sbin:$CACHE/tools/sbin
  LD_LIBRARY_PATH=$lib PATH=$bin:$PATH "$@"
}

# The mirrors are those that this machine's own apt uses: $1 is the end of the address, /debian or /debian-security.
mirror() {
  { grep -rhE '^(URIs:|deb )' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null || true; } |
    grep -oE '[a-z]+://[^ ]+' | sed 's,/$,,' | { grep -E "$1\$" || true; } | head -1
}

# Private apt lists and archives in the cache, so that the host's state stays as it is. Lists of a day ago are fresh
# enough: images are keyed by package names. $1 is one release more, with lists of its own: the image is not made of it.
private_apt() {
  local more=${1:-} at=$CACHE/apt${1:+-$1} main security key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  main=$(mirror /debian) security=$(mirror /debian-security)
  [ -n "$main" ] && [ -n "$security" ] || { say 'no Debian mirror in /etc/apt'; exit 1; }
  mkdir -p "$at"/{lists,archives}/partial
  {
    echo "deb $key $main bookworm main"
    echo "deb $key $main bookworm-updates main"
    echo "deb $key $security bookworm-security main"
  } >"$at/guest.list"
  { cat "$at/guest.list"; echo "deb $key $main bookworm-backports main"; [ -z "$more" ] || echo "deb $key $main $more main"; } >"$at/sources.list"
  apt_options=(
    -o Dir::Etc::SourceList="$at/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$at/lists" -o Dir::Cache="$at" -o Dir::Cache::archives="$at/archives"
    -o APT::Sandbox::User=root -o APT::Update::Post-Invoke= -o DPkg::Post-Invoke= -o Acquire::Languages=none
  )
  find "$at/lists" -name '*InRelease' -mmin -1440 | grep -q . || {
    say 'reading package lists'
    apt-get "${apt_options[@]}" update -qq
  }
}
