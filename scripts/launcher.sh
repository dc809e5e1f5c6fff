#!/bin/sh
# Starts the program of this name in bin/, with a LibTorch it can use. Looks in TANDEM_TORCH_DIR (the folder of a
# torch package), else in what `python3` would import, else in what Tandem's own set-up installs.
wanted=@TORCH_VERSION@   # the binary interface of LibTorch holds for one minor version
libraries="@LIBRARIES@"

self=$(readlink -f "$0")
here=$(dirname "$self")
program=$here/bin/$(basename "$0")
[ -x "$program" ] || program=$here/bin/tandem
seen=

fail() {
  echo "tandem: error: $1" >&2
  echo "tandem: $2" >&2
  exit 1
}

# Where a library of this folder's LibTorch lies: the wheel keeps CUDA's beside itself.
folders_of() {
  for folder in "$1/lib" "$1"/../nvidia/cu[0-9]*/lib "$1"/../nvidia/cuda_runtime/lib; do
    [ -d "$folder" ] && printf '%s:' "$(cd "$folder" && pwd -P)"
  done
}

usable() {   # sets `why` when it is not
  [ -e "$1/lib/libtorch_cpu.so" ] || { why="\`$1\` holds no lib/libtorch_cpu.so"; return 1; }
  version=$(sed -n "s/^__version__ = '\(.*\)'.*/\1/p" "$1/version.py" 2>/dev/null)
  [ -n "$version" ] || version=$(cat "$1/build-version" 2>/dev/null)
  case "$version" in
    "$wanted"|"$wanted".*|"$wanted"+*) ;;
    *) why="\`$1\` is LibTorch ${version:-of unknown version}, and this program needs $wanted"; return 1 ;;
  esac
  for library in $libraries; do
    found=
    old_ifs=$IFS; IFS=:
    for folder in $(folders_of "$1"); do [ -e "$folder/$library" ] && found=yes; done
    IFS=$old_ifs
    [ -n "$found" ] || { why="\`$1\` (LibTorch $version) comes without $library"; return 1; }
  done
}

start() {
  # The libraries in lib/ need each other, and a run path is not handed down.
  LD_LIBRARY_PATH=$here/lib:$(folders_of "$torch")${LD_LIBRARY_PATH:-}
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH%:}
  TANDEM_CONFIG_DIR=${TANDEM_CONFIG_DIR:-$here/configs}
  export LD_LIBRARY_PATH TANDEM_CONFIG_DIR
  exec "$program" "$@"
}

if [ -n "${TANDEM_TORCH_DIR:-}" ]; then
  torch=$TANDEM_TORCH_DIR
  usable "$torch" || fail "TANDEM_TORCH_DIR is set, but $why." "Set it to the folder of a torch $wanted package, or unset it."
  start "$@"
fi

find_torch='import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")'
for torch in "$(python3 -c "$find_torch" 2>/dev/null)" \
             "${XDG_CACHE_HOME:-${HOME:-}/.cache}"/tandem/torch-"$wanted".*/lib/python3*/site-packages/torch; do
  [ -n "$torch" ] && [ -d "$torch" ] || continue
  usable "$torch" && start "$@"
  seen=$why
done
[ -z "$seen" ] || fail "no LibTorch $wanted was found: $seen." "Install it (pip install 'torch==$wanted.*') or set TANDEM_TORCH_DIR."
fail "no LibTorch $wanted was found." "Install it (pip install 'torch==$wanted.*') or set TANDEM_TORCH_DIR to the folder of the torch package."
