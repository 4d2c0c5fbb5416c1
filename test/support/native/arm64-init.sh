#!/usr/bin/busybox sh
# The first process of an arm64 machine: runs each command of /runs, which follows a name there, and
# says what it prints.
box=/usr/bin/busybox
export PATH=/usr/bin:/usr/sbin HOME=/root

if [ ! -e /is-root ]; then
  # Sandboxes change their root, which they cannot where that is the first file system of all.
  $box mount -t tmpfs -o size=80%,mode=755 root /mnt
  for name in *; do
    case $name in dev | mnt | proc | sys) $box mkdir "/mnt/$name" ;; *) $box cp -a "$name" /mnt ;; esac
  done
  : >/mnt/is-root
  exec $box switch_root /mnt /init
fi

$box mount -t proc proc /proc
$box mount -t sysfs sys /sys
$box mount -t devtmpfs dev /dev
for name in pts shm; do $box mkdir -p "/dev/$name"; done
$box mount -t devpts devpts /dev/pts
$box mount -t tmpfs tmpfs /dev/shm
$box ip link set lo up
echo "root:x:0:0:root:/root:/bin/sh" >/etc/passwd
echo "127.0.0.1 localhost" >/etc/hosts

while read -r name command; do
  # The words of the command are split, and have no blanks.
  said=$($command 2>/tmp/errors) && verdict=said || verdict=failed
  [ $verdict = said ] || $box tail -c 4000 /tmp/errors
  echo "$verdict $name $(echo "$said" | $box tr -d '\n')"
done </runs
$box poweroff -f
