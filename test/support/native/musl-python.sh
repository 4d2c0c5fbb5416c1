#!/bin/sh
# Builds a Python for musl, as root, which is to be a layer of /usr there (musl-host.sh):
#   unshare --mount sh musl-host.sh MUSL/usr "" NODE sh musl-python.sh DIRECTORY SOURCES ZIG
# SOURCES has those of python3.13 and libffi; ZIG is the directory of the compiler. It has no OpenSSL
# and no SQLite.
set -eu
directory=$1 sources=$2 zig=$3
ffi=$sources/libffi
build=$directory/.build
mkdir -p "$build/python" "$build/ffi/include"
export ZIG_GLOBAL_CACHE_DIR="$build/zig" ZIG_LOCAL_CACHE_DIR="$build/zig"
export CC="$zig/ziglang/zig cc -target x86_64-linux-musl -dynamic -w -Wno-date-time"
export AR="$zig/ziglang/zig ar" RANLIB="$zig/ziglang/zig ranlib"

# libffi has no configure script in its sources.
cd "$build/ffi"
sed -e 's/@VERSION@/0/; s/@TARGET@/X86_64/; s/@HAVE_LONG_DOUBLE@/1/; s/@FFI_EXEC_TRAMPOLINE_TABLE@/0/' \
  "$ffi/include/ffi.h.in" >include/ffi.h
cp "$ffi/src/x86/ffitarget.h" include
cat >include/fficonfig.h <<'END'
#define EH_FRAME_FLAGS "a"
#define HAVE_AS_CFI_PSEUDO_OP 1
#define HAVE_AS_X86_PCREL 1
#define HAVE_HIDDEN_VISIBILITY_ATTRIBUTE 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_MEMCPY 1
#define STDC_HEADERS 1
#define SIZEOF_DOUBLE 8
#define SIZEOF_LONG_DOUBLE 16
#define SIZEOF_SIZE_T 8
#ifdef LIBFFI_ASM
#define FFI_HIDDEN(name) .hidden name
#else
#define FFI_HIDDEN __attribute__((visibility("hidden")))
#endif
END
for source in prep_cif.c types.c closures.c tramp.c x86/ffi64.c x86/unix64.S x86/ffiw64.c x86/win64.S; do
  $CC -O1 -fPIC -Iinclude -I"$ffi/include" -I"$ffi/src" -c "$ffi/src/$source"
done
$AR rcs libffi.a ./*.o

cd "$build/python"
export OPT=-O1 PKG_CONFIG=false
export LIBFFI_CFLAGS="-I$build/ffi/include" LIBFFI_LIBS="$build/ffi/libffi.a"
"$sources/python3.13/configure" --prefix=/usr/lib/musl-python \
  --disable-test-modules --without-ensurepip --without-static-libpython
make
make install DESTDIR="$directory"
mkdir "$directory/usr/bin"
ln -s ../lib/musl-python/bin/python3.13 "$directory/usr/bin/python3"
rm -r "$build"
