#!/usr/bin/env bash
# `make dist`: a tree in dist/ that runs on another machine with LibTorch: programs, presets, the few
# distribution libraries that machine may lack, and a launcher that finds LibTorch there. `make dist TESTS=ON`: also
# gpu_tests, for a machine that has a GPU and no compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=build-release
DIST=dist
LIMIT_MIB=60
# What a target has (glibc, the compiler's) or finds through the launcher (LibTorch's, CUDA's).
NOT_BUNDLED='^((linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libutil|libresolv|libgcc_s|libgomp)\.so|libstdc\+\+|libtorch|libc10|libcu|libnv|libnccl|libcaffe2)'

say()  { printf 'dist: %s\n' "$*"; }
fail() { printf 'dist: error: %s\n' "$*" >&2; exit 1; }

venv=$(scripts/setup.sh --prefix)
export PATH="$venv/bin:$PATH" TANDEM_VENV="$venv"
torch_include=$(echo "$venv"/lib/python3*/site-packages/torch/include)

# Names in messages and asserts are relative to the repository, not to this machine.
map="-ffile-prefix-map=$PWD/= -ffile-prefix-map=$torch_include/="
tests=${TESTS:-OFF}
cmake --preset release -B "$BUILD" -DTANDEM_RELOCATABLE=ON -DTANDEM_TESTS="$tests" \
  -DCMAKE_CXX_FLAGS="$map" -DCMAKE_CUDA_FLAGS="--compress-mode=size -Xcompiler=${map// /,}"
targets=(tandem_program)
if [ "$tests" = ON ]; then
  targets+=(gpu_tests)
  cmake --build "$BUILD" --target help | grep -q '^gpu_tests:' ||
    fail "there are no gpu_tests without nvcc; leave out TESTS=ON."
fi
start=$SECONDS
cmake --build "$BUILD" -j "${JOBS:-$(nproc)}" --target "${targets[@]}"
say "built ${targets[*]} in $((SECONDS - start)) s"

rm -rf "$DIST"
cmake --install "$BUILD" --component dist --strip --prefix "$PWD/$DIST" >/dev/null
mkdir -p "$DIST/lib"
cp -r configs "$DIST/configs"
cp LICENSE VERSION "$DIST/"

is_bundled() { ! [[ $1 =~ $NOT_BUNDLED ]]; }
bundled() {   # soname and file of each library to take along
  ldd "$BUILD"/bin/tandem | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u |
    while read -r name file; do ! is_bundled "$name" || echo "$name $file"; done
}
package_of() { { dpkg -S "$1" || dpkg -S "/usr$1"; } 2>/dev/null | head -n 1 | cut -d: -f1; }

notice=$DIST/lib/NOTICE
echo "Libraries of other projects in this folder, unchanged but for removed debug symbols." >"$notice"
while read -r name file; do
  install -m 644 "$(realpath "$file")" "$DIST/lib/$name"
  package=$(package_of "$(realpath "$file")")
  copyright=/usr/share/doc/$package/copyright
  [ -n "$package" ] && [ -f "$copyright" ] || fail "the licence of $name is not known: no Debian package holds $file."
  licences=$(sed -n 's/^License: *//p' "$copyright" | sort -u | paste -sd ';' | sed 's/;/, /g')
  { printf '\n==== %s (package %s %s, licences %s)\n\n' "$name" "$package" "$(dpkg-query -W -f='${Version}' "$package")" "$licences"
    cat "$copyright"; } >>"$notice"
done < <(bundled)
find "$DIST/lib" -name '*.so*' -exec strip --strip-unneeded {} +

# The launcher checks for the libraries of LibTorch and CUDA this build asks for.
asked=$(readelf -d "$DIST/bin/tandem" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -E '^lib(torch|c10|cu|nccl)' | paste -sd ' ')
torch_version=$(sed -n "s/^__version__ = '\([0-9]*\.[0-9]*\)\..*/\1/p" "$torch_include/../version.py")
sed -e "s/@TORCH_VERSION@/$torch_version/" -e "s/@LIBRARIES@/$asked/" scripts/launcher.sh >"$DIST/tandem"
chmod 755 "$DIST/tandem"
[ ! -e "$DIST/bin/gpu_tests" ] || ln -s tandem "$DIST/gpu_tests"

for program in "$DIST"/bin/*; do
  readelf -d "$program" | grep -q 'RUNPATH.*\[\$ORIGIN/\.\./lib\]$' ||
    fail "the run path of $program is not \$ORIGIN/../lib: $(readelf -d "$program" | grep -E 'RUNPATH|RPATH')"
done
for program in "$DIST"/bin/*; do
  ! grep -qF -e "$PWD" -e "$venv" "$program" || fail "$program still names a folder of this machine."
done
"$DIST/tandem" version >/dev/null || fail "$DIST/tandem does not start."

size=$(du -sk --exclude=gpu_tests "$DIST" | awk '{printf "%.1f", $1 / 1024}')
[ "$tests" != ON ] || say "gpu_tests are $(du -sk "$DIST/bin/gpu_tests" | awk '{printf "%.1f", $1 / 1024}') MiB more"
say "$DIST is $size MiB (limit $LIMIT_MIB): $(ls "$DIST/bin" "$DIST/lib" | grep -v ':$' | paste -sd ' ')"
awk -v s="$size" -v l="$LIMIT_MIB" 'BEGIN { exit !(s <= l) }' || fail "$DIST is over $LIMIT_MIB MiB."
