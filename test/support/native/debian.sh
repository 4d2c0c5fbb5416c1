#!/bin/sh
# Unpacks packages of Debian's release trixie, for any processor, below a directory:
#   debian.sh DIRECTORY ARCH alone|whole|source PACKAGE…
# `whole` is with all that they depend on, `source` their sources, each in a directory of its name.
# The lists of that release are kept apart from this machine's, and removed.
set -eu
directory=$1 arch=$2 kind=$3
shift 3
release=trixie
state=$directory/.apt
mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
: >"$state/status"

# The mirror that this machine uses.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/$')
signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
for type in deb deb-src; do echo "$type $signed $mirror $release main"; done >"$state/sources.list"

apt() {
  apt-get -qq -y --no-install-recommends \
    -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=- \
    -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

unpack() {
  for name in bin lib sbin lib64; do
    mkdir -p "$directory/usr/$name"
    ln -s "usr/$name" "$directory/$name"
  done
  for package in *.deb; do dpkg -x "$package" "$directory"; done
}

apt update
cd "$state/cache/archives"
case $kind in
  alone) apt download "$@" && unpack ;;
  whole) apt install --download-only "$@" && unpack ;;
  source)
    apt source --download-only "$@"
    for package; do
      mkdir "$directory/$package"
      tar -xf "$package"_*.orig.tar.?z -C "$directory/$package" --strip-components 1
    done
    ;;
esac
rm -r "$state"
